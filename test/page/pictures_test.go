package page_test

import (
	"strconv"
	"testing"
)

func quote(s string) string { return strconv.Quote(s) }

func TestPictures(t *testing.T) {
	for name, size := range map[string]int{"30": 30, "10000": 10_000} {
		f := newFixture(map[int]int{30: 12, 10_000: 50}[size], size)
		f.files = true
		b := open(t, serve(t, f))
		b.picture("page-map-" + name)
		b.visit("#view=matrix")
		b.picture("page-matrix-" + name)

		if size == 30 {
			b.visit("#view=map&panel=cell&operator=ibm-common-services/secretman&namespace=cloudpak-01")
			b.picture("page-why")
			b.visit("#view=map&panel=who&verb=get&resource=secrets&namespace=payments-01")
			b.picture("page-who")
			b.visit("#view=matrix&theme=dark&panel=block&namespace=cloudpak-01")
			b.picture("page-dark")
			b.visit("#view=plan&panel=namespace&namespace=stranger")
			b.sees("#aside", "may not create roles")
			b.picture("page-plan")
		}
	}
}
