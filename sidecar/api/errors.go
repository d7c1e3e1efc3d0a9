package api

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
)

// The errors of a call that concern no field. The server maps them to 404, 409 and 503. The client maps these statuses
// to the same errors, so that errors.Is works on both sides.
var (
	ErrNotFound    = errors.New("not found")
	ErrConflict    = errors.New("conflict")
	ErrUnavailable = errors.New("unavailable")
)

// ProblemError is a [Problem] as the client returns it. It is an [ErrNotFound], [ErrConflict] or [ErrUnavailable] by
// its status.
type ProblemError struct {
	Problem
}

// Error returns the detail, or the title and status where there is none.
func (e *ProblemError) Error() string {
	if e.Detail != "" {
		return e.Detail
	}
	return fmt.Sprintf("%s (%d)", cmp.Or(e.Title, http.StatusText(e.Status), "status"), e.Status)
}

// Unwrap returns the error of the status, nil for any other status.
func (e *ProblemError) Unwrap() error {
	switch e.Status {
	case http.StatusNotFound:
		return ErrNotFound
	case http.StatusConflict:
		return ErrConflict
	case http.StatusServiceUnavailable:
		return ErrUnavailable
	}
	return nil
}

// FieldError reports a field with a value that is not allowed. The server answers it as a 422 [Problem]. The command
// line prints it and exits with status 2.
type FieldError struct {
	Field   string
	Value   string
	Allowed string
}

// Error names the field, its value and the allowed values. An empty value means that the required field is missing.
func (e *FieldError) Error() string {
	if e.Value == "" {
		return e.Field + " is required: " + e.Allowed
	}
	return e.Field + ": " + e.Value + " is not allowed: " + e.Allowed
}

// Refuse returns a [*FieldError] for a value that is not allowed. allowed describes the allowed values.
func Refuse(field string, value any, allowed string) error {
	return &FieldError{Field: field, Value: fmt.Sprint(value), Allowed: allowed}
}

// Require returns a [*FieldError] for a required field that is missing.
func Require(field, allowed string) error {
	return &FieldError{Field: field, Allowed: allowed}
}

// ErrLate is the error that [Reason] returns for a timeout.
var ErrLate = errors.New("no answer in time")

// Reason returns the reason of a failed HTTP call in a text that is the same for every attempt: no local ports, no
// repeated addresses. A timeout is [ErrLate].
func Reason(err error) error {
	var timeout interface{ Timeout() bool }
	if errors.As(err, &timeout) && timeout.Timeout() {
		return ErrLate
	}
	var call *url.Error
	if errors.As(err, &call) {
		err = call.Err
	}
	var network *net.OpError
	if errors.As(err, &network) {
		err = network.Err
	}
	var system *os.SyscallError
	if errors.As(err, &system) {
		err = system.Err
	}
	return err
}
