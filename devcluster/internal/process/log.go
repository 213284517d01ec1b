package process

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
)

// logTail bounds how much of the end of a log is looked at.
const logTail = 64 << 10

// maxLine bounds how much of a line ends up in an error message.
const maxLine = 400

// tells matches the lines by which the components say why they end: klog's
// errors and fatal errors, cobra's errors, etcd's JSON lines, Go's panics.
var tells = regexp.MustCompile(`^[EF]\d{4} |^(Error|error|panic|fatal error):|"level":"(?i:error|fatal|panic)"`)

// LastWords returns the line of the log that most likely says why the process
// ended: the last error, or else the last line that is not empty.
func (p *Process) LastWords() string {
	last := ""
	lines := strings.Split(string(p.tail()), "\n")
	for _, line := range slices.Backward(lines) {
		line = strings.TrimSpace(line)
		if tells.MatchString(line) {
			return shorten(plain(line))
		}
		if last == "" {
			last = line
		}
	}
	if last == "" {
		return "it logged nothing"
	}
	return shorten(last)
}

// AddressTaken tells whether the process ended because something else listens
// on its port.
func (p *Process) AddressTaken() bool {
	return bytes.Contains(p.tail(), []byte("address already in use"))
}

// plain takes the words out of a line that is JSON, which etcd and kwok write.
func plain(line string) string {
	var entry struct {
		Msg   string `json:"msg"`
		Err   string `json:"err"`
		Error string `json:"error"`
	}
	if err := json.Unmarshal([]byte(line), &entry); err != nil || entry.Msg == "" {
		return line
	}
	if cause := cmp.Or(entry.Error, entry.Err); cause != "" {
		return entry.Msg + ": " + cause
	}
	return entry.Msg
}

func shorten(line string) string {
	if len(line) > maxLine {
		return strings.ToValidUTF8(line[:maxLine], "") + "..."
	}
	return line
}

// tail returns the end of what this process wrote into its log, without what
// others of the same name wrote before it. It returns nothing if the log
// cannot be read: it only serves error messages about something else.
func (p *Process) tail() []byte {
	file, err := os.Open(p.Log)
	if err != nil {
		return nil
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return nil
	}
	if _, err := file.Seek(max(p.logStart, info.Size()-logTail), io.SeekStart); err != nil {
		return nil
	}
	content, err := io.ReadAll(io.LimitReader(file, logTail))
	if err != nil {
		return nil
	}
	return content
}
