package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"

	"kvbooth/sidecar/api"
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
	d := json.NewDecoder(bytes.NewReader(body))
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
	if t.Kind() == reflect.Float64 && (api.Limits[field].Unit == "seconds" || strings.HasSuffix(field, "seconds")) {
		return name + " of seconds, such as 0.6"
	}
	return name
}

func kindName(t reflect.Type) string {
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

// fieldNames lists the fields of a body, with paths for nested ones.
func fieldNames(t reflect.Type) (names []string) {
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names = append(names, name)
		ft := f.Type
		if ft.Kind() == reflect.Pointer {
			ft = ft.Elem()
		}
		if ft.Kind() == reflect.Struct {
			for _, deeper := range fieldNames(ft) {
				names = append(names, name+"."+deeper)
			}
		}
	}
	return names
}
