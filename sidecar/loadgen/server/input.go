package server

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/server/page"
)

// decode reads a body that is one JSON object without unknown fields, within the static limits. The backend checks
// limits that depend on state.
func decode[T any](w http.ResponseWriter, r *http.Request) (v T, err error) {
	if t, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); t != "application/json" {
		return v, wrongType(r, "application/json")
	}
	body, err := wholeBody(w, r, api.MaxBody)
	if err != nil {
		return v, err
	}
	if body = bytes.TrimSpace(body); len(body) == 0 || body[0] != '{' {
		return v, malformed("the body is not a JSON object")
	}
	d := json.NewDecoder(bytes.NewReader(api.PresentNames(body)))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		return v, explain(err, reflect.TypeFor[T]())
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return v, malformed("unexpected data after the JSON object")
	}
	if own, ok := any(v).(interface{ Check() error }); ok {
		return v, own.Check()
	}
	return v, api.CheckLimits(v)
}

// wholeBody reads a body of at most limit bytes. An incomplete body is always the caller's error.
func wholeBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	switch {
	case err == nil:
		return body, nil
	case errors.As(err, new(*http.MaxBytesError)):
		return nil, err
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, &refused{status: http.StatusRequestTimeout, detail: fmt.Sprintf("the body did not arrive within %v",
			readTimeout)}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, malformed("the body ends before its announced length")
	}
	return nil, malformed("the body cannot be read: " + err.Error())
}

func malformed(detail string) error {
	return &refused{status: http.StatusBadRequest, detail: detail}
}

func wrongType(r *http.Request, want string) error {
	return &refused{
		status: http.StatusUnsupportedMediaType,
		detail: fmt.Sprintf("the Content-Type is %q; it must be %s", r.Header.Get("Content-Type"), want),
	}
}

// explain names the field that encoding/json could not read, and what it allows.
func explain(err error, t reflect.Type) error {
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		return api.Refuse(kind.Field, fmt.Sprintf("a JSON %.40s", kind.Value), kindOf(kind.Field, kind.Type))
	}
	// encoding/json has no type for this error.
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return api.Refuse(fmt.Sprintf("%.40s", strings.Trim(name, `"`)), "an unknown field", "only "+strings.Join(fieldNames(t), ", "))
	}
	// Nor for this one, which names no field.
	if what, ok := strings.CutPrefix(err.Error(), "json: invalid use of ,string struct tag, trying to unmarshal "); ok {
		what, _, _ = strings.Cut(what, " into ")
		return api.Refuse(strings.Join(quotedFields(t), " or "), fmt.Sprintf("%.40s", what), "a whole number in quotes")
	}
	return malformed("the body is not a JSON object: " + err.Error())
}

// quotedFields lists the numbers that a body may have in quotes.
func quotedFields(t reflect.Type) (names []string) {
	for f := range t.Fields() {
		if name, options, _ := strings.Cut(f.Tag.Get("json"), ","); slices.Contains(strings.Split(options, ","), "string") {
			names = append(names, name)
		}
	}
	return names
}

// kindOf describes what a field allows, with the unit of a time.
func kindOf(field string, t reflect.Type) string {
	name := kindName(t)
	unit := cmp.Or(api.Limits[field].Unit, api.SweepLimits[field].Unit)
	if t.Kind() == reflect.Float64 && unit == "seconds" {
		return name + " of seconds, such as 0.6"
	}
	return name
}

func kindName(t reflect.Type) string {
	if t == reflect.TypeFor[api.Level]() {
		return "a whole number, or a rate such as 12/s"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64, reflect.Uint64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.String:
		return "a string"
	case reflect.Slice:
		return "a list"
	}
	return "an object"
}

// fieldNames lists the fields of a body and those of its objects, with paths.
func fieldNames(t reflect.Type) (names []string) {
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names = append(names, name)
		ft := f.Type
		if ft.Kind() == reflect.Pointer {
			ft = ft.Elem()
		}
		if ft.Kind() == reflect.Struct && ft != reflect.TypeFor[api.Level]() {
			for inner := range ft.Fields() {
				deeper, _, _ := strings.Cut(inner.Tag.Get("json"), ",")
				names = append(names, name+"."+deeper)
			}
		}
	}
	return names
}

// refused is an error with a status of its own.
type refused struct {
	status int
	detail string
	header http.Header
}

func (e *refused) Error() string { return e.detail }

// errInterrupted is a call whose caller went away, or whose session ended, before it was complete.
var errInterrupted = &refused{
	status: http.StatusServiceUnavailable,
	detail: "the call was interrupted before it was complete; repeat it",
}

// unread bounds the wait for a body that no handler reads. Otherwise, net/http would wait for it before it sends the
// answer.
func unread(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength != 0 {
		_ = http.NewResponseController(w).SetReadDeadline(deadline(refusedTimeout)) // a failure leaves the server's deadline
	}
}

// fail answers with the problem document of an error, even if the caller has disconnected: without an answer, net/http
// would send an empty 200.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	if unread(w, r); r.ContentLength != 0 {
		w.Header().Set("Connection", "close")
	}
	var own *refused
	if errors.As(err, &own) {
		maps.Copy(w.Header(), own.header)
	}
	p := problem(err)
	if p.Status == http.StatusInternalServerError && r.Context().Err() != nil {
		p = problem(errInterrupted)
	}
	if p.Status == http.StatusInternalServerError {
		s.opts.Log.Error("request failed", "method", r.Method, "path", r.URL.Path, "error", err)
	} else {
		s.opts.Log.Debug("request rejected", "method", r.Method, "path", r.URL.Path, "from", r.RemoteAddr, "status",
			p.Status, "error", err)
	}
	if err := reply(w, r, p.Status, "application/problem+json", p); err != nil {
		s.opts.Log.Error("writing the error response failed", "error", err)
	}
}

// problem returns the document of an error. An unknown error is internal, and its text is withheld.
func problem(err error) api.Problem {
	var (
		own      *refused
		field    *api.FieldError
		tooLarge *http.MaxBytesError
		p        = api.Problem{Type: "about:blank", Detail: err.Error()}
	)
	switch {
	case errors.As(err, &own):
		p.Status = own.status
	case errors.As(err, &field):
		p.Status, p.Field, p.Value, p.Allowed = http.StatusUnprocessableEntity, field.Field, field.Value, field.Allowed
	case errors.As(err, &tooLarge):
		p.Status, p.Detail = http.StatusRequestEntityTooLarge, fmt.Sprintf("the request body is larger than %d bytes",
			tooLarge.Limit)
	case errors.Is(err, api.ErrNotFound):
		p.Status = http.StatusNotFound
	case errors.Is(err, api.ErrConflict):
		p.Status = http.StatusConflict
	case errors.Is(err, api.ErrUnavailable):
		p.Status = http.StatusServiceUnavailable
	default:
		p.Status, p.Detail = http.StatusInternalServerError, "internal error of the load generator; see its log"
	}
	p.Title = http.StatusText(p.Status)
	return p
}

// compressFrom is the size in bytes from which an answer is compressed: lists, but not the snapshots that are read
// every second.
const compressFrom = 16 << 10

// reply writes v as JSON, compressed where it is large and the reader takes that. It returns an error if v cannot be
// encoded; nothing has been sent then.
func reply(w http.ResponseWriter, r *http.Request, status int, contentType string, v any) error {
	var body bytes.Buffer
	if err := json.NewEncoder(&body).Encode(v); err != nil {
		return err
	}
	w.Header().Set("Content-Type", contentType)
	if body.Len() >= compressFrom && page.TakesGzip(r) {
		w.Header().Set("Content-Encoding", "gzip")
		w.WriteHeader(status)
		zipped := gzip.NewWriter(w)
		_, _ = zipped.Write(body.Bytes())
		_ = zipped.Close() // a reader that does not read has disconnected
		return nil
	}
	w.WriteHeader(status)
	_, _ = w.Write(body.Bytes()) // a reader that does not read has disconnected
	return nil
}
