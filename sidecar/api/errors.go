package api

import (
	"errors"
	"fmt"
	"net/http"
)

// What a call refuses for reasons other than its own fields. The server maps
// them to 404, 409 and 503; the client maps those back, so that errors.Is works
// on both sides.
var (
	ErrNotFound    = errors.New("not found")
	ErrConflict    = errors.New("conflict")
	ErrUnavailable = errors.New("unavailable")
)

// ProblemError is a [Problem] as the client returns it. It is an [ErrNotFound],
// [ErrConflict] or [ErrUnavailable] where its status says so.
type ProblemError struct {
	Problem
}

// Error gives the detail, or the title and status where there is none.
func (e *ProblemError) Error() string {
	if e.Detail != "" {
		return e.Detail
	}
	return fmt.Sprintf("%s (%d)", e.Title, e.Status)
}

// Unwrap gives the error that the status stands for, nil for any other status.
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

// FieldError is bad input: the field, its value, and what is allowed. The
// server answers it as a 422 [Problem]; the command line prints it and exits 2.
type FieldError struct {
	Field   string
	Value   string
	Allowed string
}

// Error names field, value and what is allowed.
func (e *FieldError) Error() string {
	return e.Field + ": " + e.Value + " is not allowed: " + e.Allowed
}

// Refuse gives the [FieldError] of a value.
func Refuse(field string, value any, allowed string) error {
	return &FieldError{Field: field, Value: fmt.Sprint(value), Allowed: allowed}
}
