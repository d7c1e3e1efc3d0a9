package plugin

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/grafana/grafana-plugin-sdk-go/backend"
	"github.com/grafana/grafana-plugin-sdk-go/backend/httpclient"

	"kvbooth/sidecar/api"
)

// Bounds of bodies in bytes, which are the load generator's own.
const (
	maxBody     = 64 << 10
	maxBaseline = 1 << 20
)

// route is a call: a pattern of http.ServeMux, who may make it, and what answers
// it. An error that handle returns has not been answered yet.
type route struct {
	pattern string
	access  access
	handle  handler
}

type handler func(*api.Client, http.ResponseWriter, *http.Request) error

// routes are the load generator's own calls, without the prefix of their paths;
// nothing else of it can be reached. Each goes through the typed client, so that
// no path, query or header of a caller gets to the load generator as it came.
func routes() []route {
	return []route{
		{"GET /status", see, get((*api.Client).Status)},
		{"GET /snapshot", see, get((*api.Client).Snapshot)},
		{"GET /cluster", see, cluster},
		{"GET /decisions", see, latest((*api.Client).Decisions)},
		{"POST /workload/start", operate, change((*api.Client).Start, http.StatusOK)},
		{"POST /workload/stop", operate, change((*api.Client).Stop, http.StatusOK)},
		{"PATCH /workload", operate, change((*api.Client).Patch, http.StatusOK)},
		{"PUT /cluster/mode", operate, change((*api.Client).SetMode, http.StatusAccepted)},
		{"DELETE /cluster/mode", operate, cancelMode},
		{"GET /settings", see, get((*api.Client).Settings)},
		{"PATCH /settings", configure, patchSettings},
		{"GET /conversations", see, conversations},
		{"GET /conversations/{id}", see, item("id", (*api.Client).Conversation)},
		{"GET /starters/{id}", see, starter},
		{"GET /turns.csv", see, turns},
		{"GET /events", see, latest((*api.Client).Events)},
		{"GET /baselines", see, get((*api.Client).Baselines)},
		{"GET /baselines/{name}", see, item("name", (*api.Client).Baseline)},
		{"GET /comparison", see, comparison},
		{"POST /baselines", configure, importBaseline},
	}
}

// resources answers the load generator's calls, and /me.
func (a *App) resources() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /me", a.me)
	for _, rt := range routes() {
		mux.Handle(rt.pattern, a.guarded(rt))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body == nil { // the SDK's adapter, unlike net/http, makes no empty one
			r.Body = http.NoBody
		}
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		// ServeMux would tidy a path up with a redirect, which leads out of the
		// plugin's part of Grafana.
		if _, pattern := mux.Handler(r); pattern == "" || path.Clean(r.URL.Path) != r.URL.Path {
			a.fail(w, r, fmt.Errorf("%w: there is no such call", api.ErrNotFound))
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// guarded lets those through whose role the route asks for.
func (a *App) guarded(rt route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u := backend.PluginConfigFromContext(r.Context()).User
		err := a.problem
		switch {
		case !a.may(u, rt.access):
			err = &refused{http.StatusForbidden, fmt.Sprintf("this needs the role %s, or a higher one, in Grafana", a.least(rt.access))}
		case err == nil:
			err = rt.handle(a.client.As(login(u)), w, r.WithContext(httpclient.WithResponseLimit(r.Context(), a.tuning.answer)))
		}
		if err != nil {
			a.fail(w, r, err)
		}
	})
}

// get answers with what a call without parameters gives.
func get[T any](call func(*api.Client, context.Context) (T, error)) handler {
	return func(c *api.Client, w http.ResponseWriter, r *http.Request) error {
		if _, err := params(r); err != nil {
			return err
		}
		v, err := call(c, r.Context())
		return answer(w, http.StatusOK, v, err)
	}
}

// item answers with the thing that a segment of the path names.
func item[T any](segment string, call func(*api.Client, context.Context, string) (T, error)) handler {
	return func(c *api.Client, w http.ResponseWriter, r *http.Request) error {
		if _, err := params(r); err != nil {
			return err
		}
		v, err := call(c, r.Context(), r.PathValue(segment))
		return answer(w, http.StatusOK, v, err)
	}
}

// change answers a call that changes a lane, with its new state.
func change[T any](call func(*api.Client, context.Context, string, T) (api.State, error), status int) handler {
	return func(c *api.Client, w http.ResponseWriter, r *http.Request) error {
		q, err := params(r, "lane")
		if err != nil {
			return err
		}
		req, err := decode[T](w, r, maxBody)
		if err != nil {
			return err
		}
		v, err := call(c, r.Context(), q.Get("lane"), req)
		return answer(w, status, v, err)
	}
}

func cancelMode(c *api.Client, w http.ResponseWriter, r *http.Request) error {
	q, err := params(r, "lane")
	if err != nil {
		return err
	}
	v, err := c.CancelMode(r.Context(), q.Get("lane"))
	return answer(w, http.StatusAccepted, v, err)
}

func cluster(c *api.Client, w http.ResponseWriter, r *http.Request) error {
	q, err := params(r, "lane")
	if err != nil {
		return err
	}
	v, err := c.Cluster(r.Context(), q.Get("lane"))
	return answer(w, http.StatusOK, v, err)
}

func patchSettings(c *api.Client, w http.ResponseWriter, r *http.Request) error {
	if _, err := params(r); err != nil {
		return err
	}
	p, err := decode[api.SettingsPatch](w, r, maxBody)
	if err != nil {
		return err
	}
	v, err := c.PatchSettings(r.Context(), p)
	return answer(w, http.StatusOK, v, err)
}

func conversations(c *api.Client, w http.ResponseWriter, r *http.Request) error {
	q, err := params(r, "lane", "status", "topic", "cursor", "limit")
	if err != nil {
		return err
	}
	limit, err := number(q, "limit")
	if err != nil {
		return err
	}
	v, err := c.Conversations(r.Context(), api.ConversationQuery{
		Lane: q.Get("lane"), Status: api.ConversationStatus(q.Get("status")),
		Topic: q.Get("topic"), Cursor: q.Get("cursor"), Limit: int(limit),
	})
	return answer(w, http.StatusOK, v, err)
}

func starter(c *api.Client, w http.ResponseWriter, r *http.Request) error {
	q, err := params(r, "lane")
	if err != nil {
		return err
	}
	v, err := c.Starter(r.Context(), q.Get("lane"), r.PathValue("id"))
	return answer(w, http.StatusOK, v, err)
}

// latest answers with the newest of a lane's.
func latest[T any](call func(*api.Client, context.Context, string, int) (T, error)) handler {
	return func(c *api.Client, w http.ResponseWriter, r *http.Request) error {
		q, err := params(r, "lane", "limit")
		if err != nil {
			return err
		}
		limit, err := number(q, "limit")
		if err != nil {
			return err
		}
		v, err := call(c, r.Context(), q.Get("lane"), int(limit))
		return answer(w, http.StatusOK, v, err)
	}
}

// turns reads all of the raw data before it answers: Grafana would pass an
// answer on as whole that breaks off.
func turns(c *api.Client, w http.ResponseWriter, r *http.Request) error {
	q, err := params(r, "lane", "step")
	if err != nil {
		return err
	}
	step, err := number(q, "step")
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := c.TurnsCSV(r.Context(), &text, q.Get("lane"), step); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="turns.csv"`)
	_, _ = w.Write(text.Bytes())
	return nil
}

func comparison(c *api.Client, w http.ResponseWriter, r *http.Request) error {
	q, err := params(r, "lane", "baseline")
	if err != nil {
		return err
	}
	v, err := c.Comparison(r.Context(), q.Get("lane"), q.Get("baseline"))
	return answer(w, http.StatusOK, v, err)
}

func importBaseline(c *api.Client, w http.ResponseWriter, r *http.Request) error {
	if !isType(r, "text/csv") {
		if _, err := params(r); err != nil {
			return err
		}
		b, err := decode[api.Baseline](w, r, maxBaseline)
		if err != nil {
			return err
		}
		v, err := c.SaveBaseline(r.Context(), b)
		return answer(w, http.StatusCreated, v, err)
	}
	q, err := params(r, "name")
	if err != nil {
		return err
	}
	table, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBaseline))
	if err != nil {
		return err
	}
	v, err := c.ImportCSV(r.Context(), q.Get("name"), bytes.NewReader(table))
	return answer(w, http.StatusCreated, v, err)
}

// params gives the query, which may hold each of the names once and nothing else.
func params(r *http.Request, names ...string) (url.Values, error) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, &refused{http.StatusBadRequest, "the query cannot be read"}
	}
	for name, values := range q {
		if !slices.Contains(names, name) {
			return nil, &api.FieldError{Field: "query", Value: fmt.Sprintf("a parameter %.40q", name), Allowed: "only " + cmp.Or(strings.Join(names, ", "), "a query without any")}
		}
		if len(values) > 1 {
			return nil, &api.FieldError{Field: name, Value: "more than one", Allowed: "one"}
		}
	}
	return q, nil
}

// number is 0 where the query does not say; its range is the load generator's to
// check.
func number(q url.Values, name string) (int64, error) {
	if q.Get(name) == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(q.Get(name), 10, 64)
	if err != nil || n < 0 || n > math.MaxInt32 && name == "limit" {
		return 0, &api.FieldError{Field: name, Value: fmt.Sprintf("%.40q", q.Get(name)), Allowed: "a whole number"}
	}
	return n, nil
}

func isType(r *http.Request, want string) bool {
	got, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return got == want
}

// decode reads a body that is one JSON object without unknown fields; its values
// are the load generator's to check.
func decode[T any](w http.ResponseWriter, r *http.Request, limit int64) (v T, err error) {
	if !isType(r, "application/json") {
		return v, &refused{http.StatusUnsupportedMediaType, "the Content-Type has to be application/json"}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if err != nil {
		return v, err
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	err = d.Decode(&v)
	if kind := (*json.UnmarshalTypeError)(nil); errors.As(err, &kind) && kind.Field != "" {
		return v, &api.FieldError{Field: kind.Field, Value: "a JSON " + kind.Value, Allowed: "a JSON " + kind.Type.Kind().String()}
	}
	if err != nil {
		return v, &refused{http.StatusBadRequest, "the body is not the JSON object that this call takes: " + err.Error()}
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return v, &refused{http.StatusBadRequest, "something follows the JSON object"}
	}
	return v, nil
}

// answer writes v, unless the call that gave it has failed.
func answer(w http.ResponseWriter, status int, v any, err error) error {
	if err != nil {
		return err
	}
	return reply(w, status, "application/json", v)
}

// reply writes v as JSON. The error says that v cannot be written so; nothing
// has been sent then.
func reply(w http.ResponseWriter, status int, contentType string, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_, _ = w.Write(body) // who does not read the answer has gone
	return nil
}
