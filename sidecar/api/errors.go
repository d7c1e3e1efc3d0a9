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
