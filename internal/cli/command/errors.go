package command

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// ErrMissing is what a command returns when permissions are missing. The command has printed which.
var ErrMissing = errors.New("permissions are missing")

// ErrUnknown is what a command returns when it cannot tell the answer. The command has printed why.
var ErrUnknown = errors.New("it is unknown")

// UsageError is an error in how a command was called.
type UsageError struct{ error }

// Usage says that an error is in how a command was called.
func Usage(err error) error { return UsageError{err} }

// Usagef makes an error in how a command was called.
func Usagef(format string, values ...any) error { return UsageError{fmt.Errorf(format, values...)} }

// oneLineError is an error whose message has no line breaks; the API server lists refused rules on lines of their own.
type oneLineError struct{ error }

// OneLine makes one line of the message of an error; no error stays none.
func OneLine(err error) error {
	if err == nil {
		return nil
	}

	return oneLineError{err}
}

// Error returns the message in one line.
func (e oneLineError) Error() string {
	lines := strings.FieldsFunc(e.error.Error(), func(r rune) bool { return r == '\n' || r == '\r' })
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}

	return strings.Join(lines, " ")
}

// Unwrap returns the error as it was.
func (e oneLineError) Unwrap() error { return e.error }

// Advised says what to do about an error that any command can meet: the API server is another one, or it does not know who asks.
func Advised(err error) error {
	switch certificate := (*tls.CertificateVerificationError)(nil); {
	case errors.As(err, &certificate):
		return fmt.Errorf("%w (is --certificate-authority that of this server?)", err)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%w (the token or certificate given to the API server is wrong, or has expired)", err)
	default:
		return err
	}
}

// Unanswered says whether a request failed because the API server was away or had no time for it, which is no refusal.
func Unanswered(err error) bool {
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		code := status.Status().Code

		return code >= http.StatusInternalServerError || code == http.StatusTooManyRequests
	}

	lost := (*url.Error)(nil)

	return errors.As(err, &lost)
}
