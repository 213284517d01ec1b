package controllers_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ambit-k8s/ambit/internal/controllers"
	"github.com/ambit-k8s/ambit/internal/projected"
)

// answers are those of an API server, one after the other; the last one stays.
type answers []int

// silent is no answer; empty is a Secret without a key.
const silent, empty = 0, http.StatusNonAuthoritativeInfo

func (a *answers) RoundTrip(asked *http.Request) (*http.Response, error) {
	code := (*a)[0]
	if len(*a) > 1 {
		*a = (*a)[1:]
	}

	if code == silent {
		<-asked.Context().Done()

		return nil, asked.Context().Err()
	}

	body := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":%q}`, code,
		strings.ReplaceAll(http.StatusText(code), " ", ""))

	switch code {
	case http.StatusOK:
		body = fmt.Sprintf(`{"kind":"Secret","apiVersion":"v1","metadata":{"name":"ambit-names","namespace":"ambit-system"},`+
			`"data":{"key":%q}}`, base64.StdEncoding.EncodeToString(kept()))
	case empty:
		code, body = http.StatusOK, `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"ambit-names","namespace":"ambit-system"}}`
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

	const failing, refusing, answering, unknown = http.StatusInternalServerError, http.StatusForbidden, http.StatusOK,
		http.StatusUnauthorized

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
		"it is silent":                  {append(repeated(silent, 60), answering), true},
		"it has too much to do":         {append(repeated(http.StatusTooManyRequests, 60), answering), true},
		"another manager was faster":    {append(append(answers{empty}, repeated(http.StatusConflict, 60)...), answering), true},
		"it knows nobody for a moment":  {append(repeated(unknown, 4), answering), true},
		"it knows nobody, then refuses": {append(repeated(unknown, 4), append(repeated(refusing, 4), answering)...), true},
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

// TestNamesAreNotWaitedForInVain: what the API server says as long as nobody does anything about it ends Ambit, and the error
// says what to do. An Ambit that waited would look like one that works.
func TestNamesAreNotWaitedForInVain(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		says answers
		want string
	}{
		"its namespace is not there": {answers{http.StatusNotFound}, "create namespace ambit-system"},
		"the Secret takes no key":    {immutable(60), "replace the Secret by an empty one"},
		"Ambit is nobody":            {answers{http.StatusUnauthorized}, "credentials"},
		"it takes no such request":   {answers{http.StatusBadRequest}, "start again"},
		"it fails, and then that":    {append(repeated(http.StatusInternalServerError, 60), http.StatusBadRequest), "start again"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()

				config := &rest.Config{Host: "http://example.com", Transport: &tc.says}

				_, err := controllers.LoadNames(ctx, config, "ambit-system")
				if err == nil || !strings.Contains(err.Error(), tc.want) || ctx.Err() != nil {
					t.Errorf("it ends with %v, want an error that says %q", err, tc.want)
				}
			})
		})
	}
}

// immutable answers as for a Secret that is there without a key, and takes none.
func immutable(times int) answers {
	var out answers
	for range times {
		out = append(out, empty, http.StatusUnprocessableEntity)
	}

	return out
}

// TestWaitingForNamesIsLogged: who looks for why Ambit does not begin finds it at the level that everybody logs, at once and each
// minute, and not each second.
func TestWaitingForNamesIsLogged(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		var said []string

		logger := funcr.New(func(_, args string) { said = append(said, args) }, funcr.Options{})
		config := &rest.Config{Host: "http://example.com", Transport: &answers{http.StatusInternalServerError}}

		ctx, cancel := context.WithTimeout(log.IntoContext(t.Context(), logger), 150*time.Second)
		defer cancel()

		if _, err := controllers.LoadNames(ctx, config, "ambit-system"); err == nil {
			t.Error("it has names")
		}

		if len(said) != 3 || !strings.Contains(said[0], "ambit-system/ambit-names") {
			t.Errorf("it says %q", said)
		}
	})
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
