package server

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"

	"kvbooth/sidecar/api"
)

// action answers a request. An error that handle returns has not been answered. The types are those of the parameters,
// the body and the answer, from which the OpenAPI document is generated. nil means none.
type action struct {
	handle              func(http.ResponseWriter, *http.Request) error
	query, body, answer reflect.Type
	status              int
	media               string // the type of an answer that is not JSON, or of its other form
}

// none is a query without parameters.
type none struct{}

// answers is a call without a body.
func answers[Q, A any](status int, do func(*http.Request, Q) (A, error)) action {
	c := gives("", func(w http.ResponseWriter, r *http.Request, q Q) error {
		v, err := do(r, q)
		if err != nil {
			return err
		}
		return reply(w, r, status, "application/json", v)
	})
	c.answer, c.status = reflect.TypeFor[A](), status
	return c
}

// submits is a call with a body.
func submits[Q, B, A any](status int, do func(*http.Request, Q, B) (A, error)) action {
	return submitted(status, func(A) string { return "" }, do)
}

// creates is a call with a body that creates a resource at a path below [api.Prefix].
func creates[Q, B, A any](at func(A) string, do func(*http.Request, Q, B) (A, error)) action {
	return submitted(http.StatusCreated, at, do)
}

func submitted[Q, B, A any](status int, at func(A) string, do func(*http.Request, Q, B) (A, error)) action {
	c := gives("", func(w http.ResponseWriter, r *http.Request, q Q) error {
		body, err := decode[B](w, r)
		if err != nil {
			return err
		}
		v, err := do(r, q, body)
		if err != nil {
			return err
		}
		if path := at(v); path != "" {
			w.Header().Set("Location", api.Prefix+path)
		}
		return reply(w, r, status, "application/json", v)
	})
	c.body, c.answer, c.status = reflect.TypeFor[B](), reflect.TypeFor[A](), status
	return c
}

// gives is a call that writes its answer itself, in a type other than our JSON.
func gives[Q any](media string, do func(http.ResponseWriter, *http.Request, Q) error) action {
	handle := func(w http.ResponseWriter, r *http.Request) error {
		q, err := query[Q](r)
		if err != nil {
			return err
		}
		return do(w, r, q)
	}
	return action{handle: handle, query: reflect.TypeFor[Q](), status: http.StatusOK, media: media}
}

// encoded answers with encoded JSON.
func encoded[A any](get func() ([]byte, error)) action {
	c := gives("", func(w http.ResponseWriter, _ *http.Request, _ none) error {
		text, err := get()
		if err != nil {
			return err
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(text) // a reader that does not read has disconnected
		return nil
	})
	c.answer = reflect.TypeFor[A]()
	return c
}

// ofLane answers with the result of a call to a lane.
func ofLane[Q interface{ LaneName() string }, A any](
	s *Server, status int, do func(Lane, *http.Request, Q) (A, error),
) action {
	return answers(status, func(r *http.Request, q Q) (a A, err error) {
		lane, err := s.opts.Backend.Lane(q.LaneName())
		if err != nil {
			return a, err
		}
		return do(lane, r, q)
	})
}

// shown answers with a lane's data.
func shown[A any](s *Server, show func(Lane) A) action {
	return ofLane(s, http.StatusOK, func(l Lane, _ *http.Request, _ api.LaneQuery) (A, error) { return show(l), nil })
}

// control changes a lane, and answers with its new state.
func control[B any](
	s *Server, status int, do func(l Lane, ctx context.Context, by string, req B) (api.State, error),
) action {
	return submits(status, func(r *http.Request, q api.LaneQuery, req B) (api.State, error) {
		lane, err := s.opts.Backend.Lane(q.Lane)
		if err != nil {
			return api.State{}, err
		}
		return do(lane, r.Context(), caller(r), req)
	})
}

// item answers with the resource that a segment of the path names.
func item[A any](segment string, get func(context.Context, string) (A, error)) action {
	return answers(http.StatusOK, func(r *http.Request, _ none) (A, error) {
		return get(r.Context(), r.PathValue(segment))
	})
}

// plain answers with a value that is always available.
func plain[A any](get func() A) action {
	return answers(http.StatusOK, func(*http.Request, none) (A, error) { return get(), nil })
}

// change answers with the result of a caller's request.
func change[B, A any](status int, do func(ctx context.Context, by string, req B) (A, error)) action {
	return submits(status, func(r *http.Request, _ none, req B) (A, error) { return do(r.Context(), caller(r), req) })
}

// query reads the parameters of a call. Unknown and repeated parameters are refused. The error is an [api.FieldError].
func query[Q any](r *http.Request) (q Q, err error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return q, malformed("the query cannot be read: " + err.Error())
	}
	fields := reflect.VisibleFields(reflect.TypeFor[Q]())
	known := map[string]bool{}
	var names []string
	for _, f := range fields {
		if name := f.Tag.Get("query"); name != "" {
			known[name], names = true, append(names, name)
		}
	}
	for name := range values {
		if !known[name] {
			return q, api.Refuse("query", fmt.Sprintf("a parameter %.40q", name), allowedOf(names))
		}
	}
	for _, f := range fields {
		if name := f.Tag.Get("query"); name != "" {
			if err := setParameter(reflect.ValueOf(&q).Elem().FieldByIndex(f.Index), name, f.Tag, values[name]); err != nil {
				return q, err
			}
		}
	}
	return q, nil
}

func allowedOf(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return "only " + strings.Join(names, ", ")
}

// setParameter sets a field from a parameter, or to its default.
func setParameter(to reflect.Value, name string, tag reflect.StructTag, values []string) error {
	if len(values) > 1 {
		return api.Refuse(name, "given more than once", "one")
	}
	text := cmp.Or(strings.Join(values, ""), tag.Get("default"))
	if text == "" {
		if l, _ := api.LimitOf(tag); tag.Get("required") == "true" {
			return api.Require(name, "the name of a baseline, "+l.String())
		}
		return nil
	}
	switch to.Kind() {
	case reflect.Bool:
		to.SetBool(text == "true")
		return api.OneOf(name, text, []string{"true", "false"})
	case reflect.Int, reflect.Int64:
		n, err := strconv.ParseInt(text, 10, 64)
		if l, _ := api.LimitOf(tag); err != nil || n < int64(l.Min) || float64(n) > l.Max {
			return api.Refuse(name, fmt.Sprintf("%.40q", text), "a whole number, "+l.String())
		}
		to.SetInt(n)
		return nil
	}
	to.SetString(text)
	return api.CheckField(name, to.Interface(), tag)
}
