package page_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

func awaited(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }

// measured is what a browser says of itself.
type measured struct {
	Paint  float64 `json:"paint"`
	Ready  float64 `json:"ready"`
	Bytes  float64 `json:"bytes"`
	Heap   float64 `json:"heap"`
	Frames float64 `json:"frames"`
}

// TestSpeed holds that ten thousand namespaces by fifty operators open in under two seconds, and that the matrix scrolls without
// a frame that takes longer than the eye forgives. The numbers are printed for docs/page.md.
func TestSpeed(t *testing.T) {
	for _, namespaces := range []int{100, 1_000, 10_000} {
		f := newFixture(50, namespaces)
		b := open(t, serve(t, f))
		b.visit("#view=matrix")
		b.run(chromedp.Reload(), chromedp.WaitVisible("body[data-version]"), chromedp.Sleep(300*time.Millisecond))

		var m measured

		b.run(chromedp.Evaluate(`(async () => {
			const at = (name) => performance.getEntriesByName(name)[0]?.startTime ?? 0;
			const bytes = performance.getEntries().reduce((sum, e) => sum + (e.transferSize ?? 0), 0);
			const scroller = document.querySelector(".scroller");
			const frame = () => new Promise(requestAnimationFrame);
			await frame();
			const began = performance.now();
			let frames = 0;
			while (performance.now() - began < 2000) {
				scroller.scrollTop += 53;
				await frame();
				frames++;
			}
			return { paint: at("first-contentful-paint"), ready: at("ambit-ready"), bytes, heap: performance.memory?.usedJSHeapSize ?? 0,
				frames: frames / ((performance.now() - began) / 1000) };
		})()`, &m, awaited))

		t.Logf("| %d × 50 | %.0f ms | %.0f ms | %.0f kB | %.0f | %.0f MB | %s |", namespaces, m.Paint, m.Ready, m.Bytes/1000, m.Frames,
			m.Heap/1e6, memory(t))

		if m.Ready == 0 || m.Ready > 2000 {
			t.Errorf("%d namespaces are there after %.0f ms", namespaces, m.Ready)
		}

		// A machine that does something else beside has fewer than 60; one that draws everything has below five.
		if m.Frames < 15 {
			t.Errorf("%d namespaces scroll at %.0f frames per second", namespaces, m.Frames)
		}
	}
}

// memory is what this process holds, which serves the page.
func memory(t *testing.T) string {
	t.Helper()

	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return "unknown"
	}

	for line := range strings.Lines(string(status)) {
		var kilobytes int
		if n, _ := fmt.Sscanf(line, "VmRSS: %d kB", &kilobytes); n == 1 {
			return fmt.Sprintf("%d MB", kilobytes/1000)
		}
	}

	return "unknown"
}
