package catalog_test

import (
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/ambit-k8s/ambit/internal/catalog"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// TestHostileCatalogsCostLittle: whatever stands in one ConfigMap, to read it and to choose from it takes little memory and time,
// leaves little behind, and is told in few words. Real catalogs of that size take as much.
func TestHostileCatalogsCostLittle(t *testing.T) {
	const (
		mostAllocated = 400 << 20
		mostKept      = 8 << 20
		mostPeak      = 96 << 20
		mostTime      = 20 * time.Second // Seconds on a busy machine; what is quadratic takes minutes.
	)

	for name, data := range testbed.HostileCatalogs() {
		t.Run(name, func(t *testing.T) {
			size := 0
			for _, text := range data {
				size += len(text)
			}

			if size > 1<<20 {
				t.Fatalf("no ConfigMap holds %d bytes", size)
			}

			var before, after, kept runtime.MemStats

			runtime.GC()
			runtime.ReadMemStats(&before)

			peak, began := watchHeap(), time.Now()
			c := catalog.Parse(data)
			told := slices.Clone(c.Problems)

			for _, pkg := range c.Packages() {
				if len(c.Package(pkg).Channels) == 0 {
					continue
				}

				for _, installed := range []string{"", "v3000", "tea.v0"} {
					c.Belongs(installed, pkg)

					choice, err := c.Choose(&catalog.Request{
						Package: pkg, Channel: c.Package(pkg).Channels[0].Name, Installed: installed, InstalledNumber: "0.5.0",
					})
					if err == nil && choice.Next != nil {
						steps := c.Steps(choice.Next, catalog.Origin{Package: pkg})
						do := &catalog.Progress{Steps: steps, States: states(steps, olmv1alpha1.StepStatusUnknown), Approved: true}
						told = append(told, do.Status(&olmv1alpha1.InstallPlanStatus{}).Message)
					} else if err != nil && len(err.Error()) > 2_000 {
						t.Errorf("an error has %d bytes", len(err.Error()))
					}
				}
			}

			words := strings.Join(told, "\n")
			took, most := time.Since(began), peak()

			runtime.ReadMemStats(&after)
			runtime.GC()
			runtime.ReadMemStats(&kept)
			runtime.KeepAlive(c)

			allocated := after.TotalAlloc - before.TotalAlloc
			remains := int64(kept.HeapAlloc) - int64(before.HeapAlloc)
			t.Logf("%d bytes: %v, %d MiB allocated, %d at once, %d KiB kept; %d versions; %.200s", size, took.Round(time.Millisecond),
				allocated>>20, (int64(most)-int64(before.HeapAlloc))>>20, remains>>10, c.Versions(), words)

			if allocated > mostAllocated || remains > mostKept || most > before.HeapAlloc+mostPeak || took > mostTime {
				t.Error("it costs too much")
			}

			if len(words) > 50_000 {
				t.Errorf("its problems have %d bytes", len(words))
			}
		})
	}
}

// watchHeap returns a function that says how large the heap has been since.
func watchHeap() func() uint64 {
	done, most := make(chan struct{}), make(chan uint64)

	go func() {
		var peak uint64

		for tick := time.NewTicker(2 * time.Millisecond); ; {
			var now runtime.MemStats

			runtime.ReadMemStats(&now)
			peak = max(peak, now.HeapAlloc)

			select {
			case <-tick.C:
			case <-done:
				tick.Stop()
				most <- peak

				return
			}
		}
	}()

	return func() uint64 {
		close(done)

		return <-most
	}
}
