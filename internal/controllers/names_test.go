package controllers_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/ambit-k8s/ambit/internal/controllers"
	"github.com/ambit-k8s/ambit/internal/projected"
)

// answers are those of an API server, one after the other; the last one stays.
type answers []int

func (a *answers) RoundTrip(*http.Request) (*http.Response, error) {
	code := (*a)[0]
	if len(*a) > 1 {
		*a = (*a)[1:]
	}

	body := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":%q}`, code,
		strings.ReplaceAll(http.StatusText(code), " ", ""))
	if code == http.StatusOK {
		body = fmt.Sprintf(`{"kind":"Secret","apiVersion":"v1","metadata":{"name":"ambit-names","namespace":"ambit-system"},`+
			`"data":{"key":%q}}`, base64.StdEncoding.EncodeToString(kept()))
	}

	return &http.Response{
		StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)),
	}, nil
}

// kept is the key that the Secret holds.
func kept() []byte { return bytes.Repeat([]byte{7}, projected.KeySize) }

// TestNamesAreWaitedFor: an API server that fails, for however long, does not make Ambit give names by another key than the one
// that is kept: it would not know its own objects once it has that key again. Where it may not read the key, it begins without.
func TestNamesAreWaitedFor(t *testing.T) {
	t.Parallel()

	const failing, refusing, answering = http.StatusInternalServerError, http.StatusForbidden, http.StatusOK

	for name, tc := range map[string]struct {
		says answers
		kept bool
	}{
		"it answers":                    {answers{answering}, true},
		"it fails for a minute":         {append(repeated(failing, 60), answering), true},
		"it knows the roles later":      {append(repeated(refusing, 4), answering), true},
		"it refuses":                    {answers{refusing}, false},
		"it fails, and refuses once":    {append(repeated(failing, 60), refusing, failing, answering), true},
		"it fails, and then it refuses": {append(repeated(failing, 60), refusing), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			synctest.Test(t, func(t *testing.T) {
				config := &rest.Config{Host: "http://example.com", Transport: &tc.says}

				names, err := controllers.LoadNames(t.Context(), config, "ambit-system")
				if err != nil {
					t.Fatal(err)
				}

				if names.HasKey(kept()) != tc.kept {
					t.Errorf("the names are those of the key that is kept: %t, want %t", !tc.kept, tc.kept)
				}
			})
		})
	}
}

func repeated(code, times int) answers {
	var out answers
	for range times {
		out = append(out, code)
	}

	return out
}

// TestKeyThatWasReplaced: a replica that waited for its turn does not begin with a key that nobody else uses any more.
func TestKeyThatWasReplaced(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		key  []byte
		says int
		ends bool
	}{
		"the same":                  {kept(), http.StatusOK, false},
		"another":                   {bytes.Repeat([]byte{8}, projected.KeySize), http.StatusOK, true},
		"there is none":             {kept(), http.StatusNotFound, false},
		"one that may not be read":  {kept(), http.StatusForbidden, false},
		"the API server has failed": {kept(), http.StatusInternalServerError, false},
	} {
		names, err := projected.NewNames(tc.key, time.Now())
		if err != nil {
			t.Fatal(err)
		}

		config := &rest.Config{Host: "http://example.com", Transport: &answers{tc.says}}
		if err := controllers.CheckNames(t.Context(), config, "ambit-system", names); (err != nil) != tc.ends {
			t.Errorf("%s: %v", name, err)
		}
	}
}
