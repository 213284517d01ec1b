package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// screen is what people see.
type screen struct {
	out io.Writer
	// observed counts the effects that were.
	observed int

	bold, dim, green, red, plain string
}

// newScreen uses colours on a terminal, unless NO_COLOR says otherwise (https://no-color.org).
func newScreen(out *os.File) *screen {
	s := &screen{out: out}

	info, err := out.Stat()
	if err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("NO_COLOR") == "" {
		s.bold, s.dim, s.green, s.red, s.plain = "\033[1m", "\033[2m", "\033[32m", "\033[31m", "\033[0m"
	}

	return s
}

// sayf shows a line.
func (s *screen) sayf(format string, args ...any) {
	fmt.Fprintf(s.out, format+"\n", args...)
}

// title begins a step.
func (s *screen) title(number int, text string) {
	s.sayf("\n%s%d. %s%s", s.bold, number, text, s.plain)
}

// command shows a command that is about to be run.
func (s *screen) command(line string) {
	s.sayf("  $ %s%s%s", s.bold, line, s.plain)
}

// block shows text, indented.
func (s *screen) block(text string) {
	for line := range strings.Lines(strings.TrimRight(text, "\n") + "\n") {
		fmt.Fprintf(s.out, "    %s%s%s", s.dim, strings.TrimRight(line, " \n"), s.plain+"\n")
	}
}

// seenf shows an effect that was observed, and how long after the last command that was, where it took a moment.
func (s *screen) seenf(after time.Duration, format string, args ...any) {
	s.observed++

	took := ""
	if after > 0 {
		took = fmt.Sprintf("  %s(%.1f s)%s", s.dim, after.Seconds(), s.plain)
	}

	s.sayf("  %s✓%s %s%s", s.green, s.plain, fmt.Sprintf(format, args...), took)
}

// failed shows an error and returns the exit code.
func (s *screen) failed(err error) int {
	s.sayf("\n%s✗ %s%s", s.red, err, s.plain)

	return exitFailed
}
