package plugin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/grafana/grafana-plugin-sdk-go/backend"
	"github.com/grafana/grafana-plugin-sdk-go/backend/httpclient"

	"kvbooth/sidecar/api"
)

// routes are the load generator's own calls, as patterns of http.ServeMux without the prefix of their paths, with the
// access that each requires. No other call is forwarded. The load generator checks queries and bodies.
var routes = map[string]access{
	"GET /status":              see,
	"GET /snapshot":            see,
	"GET /cluster":             see,
	"GET /history":             see,
	"GET /decisions":           see,
	"GET /shadow":              see,
	"GET /twin":                see,
	"PATCH /twin":              operate,
	"POST /twin/showcase":      operate,
	"DELETE /twin/showcase":    operate,
	"POST /workload/start":     operate,
	"POST /workload/stop":      operate,
	"PATCH /workload":          operate,
	"POST /workload/measure":   operate,
	"PUT /cluster/mode":        operate,
	"DELETE /cluster/mode":     operate,
	"GET /settings":            see,
	"PATCH /settings":          configure,
	"GET /conversations":       see,
	"GET /conversations/{id}":  see,
	"GET /starters/{id}":       see,
	exports:                    see,
	"GET /events":              see,
	"GET /baselines":           see,
	"GET /baselines/{name}":    see,
	"GET /comparison":          see,
	imports:                    configure,
	"DELETE /baselines/{name}": configure,
	"GET /simulations":         see,
	"POST /simulations":        operate, // it uses CPU of the measuring machine
	simulation:                 see,
	"DELETE /simulations/{id}": operate,

	"GET /sweeps":                  see,
	"POST /sweeps":                 operate,
	"POST /sweeps/outlook":         operate,
	"POST /traffic/preview":        operate,
	"GET /sweeps/{id}":             see,
	"PATCH /sweeps/{id}":           operate,
	"DELETE /sweeps/{id}":          operate,
	"POST /sweeps/{id}/baseline":   operate, // unlike an import, its figures were measured here
	seconds:                        see,
	"GET /sweeps/{id}/report.json": see,
	"GET /sweeps/{id}/report.tsv":  see,
	"GET /sweeps/{id}/report.md":   see,
	"GET /sweeps/{id}/report.html": see,
	"GET /runs":                    see,
	"PATCH /runs/{id}":             operate,
	"GET /report.json":             see,
	"GET /report.tsv":              see,
	"GET /report.md":               see,
	"GET /report.html":             see,
}

// simulation is the only call whose answer may be events.
const simulation = "GET /simulations/{id}"

// imports is the only call whose body may be larger than [api.MaxBody].
const imports = "POST /baselines"

// exports and seconds are the calls whose answers may have any length.
const (
	exports = "GET /turns.csv"
	seconds = "GET /sweeps/{id}/seconds.csv"
)

// resources answers the load generator's calls, and /me.
func (a *App) resources() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /me", a.me)
	for pattern, needed := range routes {
		pass := a.forward
		switch {
		case pattern == exports, pattern == seconds:
			pass = a.export
		case pattern == simulation:
			pass = a.follow
		case strings.Contains(pattern, "/report."):
			pass = a.report
		}
		mux.Handle(pattern, a.guarded(needed, pass))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body == nil { // the SDK's adapter, unlike net/http, leaves it nil
			r.Body = http.NoBody
		}
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		// ServeMux would clean a path by a redirect that leaves the plugin's part of Grafana.
		if _, pattern := mux.Handler(r); pattern == "" || path.Clean(r.URL.Path) != r.URL.Path {
			a.fail(w, r, fmt.Errorf("%w: no such endpoint", api.ErrNotFound))
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// guarded forwards the calls of users who have the access.
func (a *App) guarded(needed access, pass func(w http.ResponseWriter, r *http.Request,
	login string) error,
) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u := backend.PluginConfigFromContext(r.Context()).User
		err := a.problem
		switch {
		case !a.may(u, needed):
			err = &forbidden{a.least(needed)}
		case err == nil:
			err = pass(w, r, login(u))
		}
		if err != nil {
			a.fail(w, r, err)
		}
	})
}

// forward makes a call for a user. Its answer is a JSON object.
func (a *App) forward(w http.ResponseWriter, r *http.Request, login string) error {
	return a.whole(w, r, login, func(contentType string, text []byte) bool {
		return strings.HasPrefix(contentType, "application/json") && bytes.HasPrefix(text, []byte("{"))
	})
}

// report forwards a report in the format that the path names. A page is served from Grafana's own origin, and must not
// act as a page of Grafana. Grafana replaces this policy by "sandbox", which is as strict with scripts.
func (a *App) report(w http.ResponseWriter, r *http.Request, login string) error {
	format := api.ReportFormat(strings.TrimPrefix(path.Ext(r.URL.Path), "."))
	w.Header().Set("Content-Security-Policy", api.ReportPolicy)
	return a.whole(w, r, login, func(contentType string, _ []byte) bool { return contentType == format.MediaType() })
}

// whole makes a call for a user. It reads the whole answer before it sends any of it, because Grafana would forward a
// truncated one as complete. No header of either side is forwarded, so httputil.ReverseProxy would be of no use. Only a
// few answers are buffered at once; the others wait.
func (a *App) whole(w http.ResponseWriter, r *http.Request, login string, expected func(contentType string,
	text []byte) bool,
) error {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostOf(r.Pattern)))
	if err != nil {
		return err
	}
	call := r.WithContext(httpclient.WithResponseLimit(r.Context(), a.limits.answer))
	res, err := a.client.As(login).Forward(call, bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer res.Body.Close()
	select {
	case a.answers <- struct{}{}:
		defer func() { <-a.answers }()
	case <-r.Context().Done():
		return r.Context().Err()
	}
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if !expected(res.Header.Get("Content-Type"), text) {
		return errUnexpected
	}
	begin(w, res)
	_, _ = w.Write(text)                      // a reader that does not read has disconnected
	_ = http.NewResponseController(w).Flush() // so that it is sent before the next one is held
	return nil
}

// mostOf returns the largest size of a call's body. The load generator has the same limits, so a larger body is refused
// before the call is made.
func mostOf(pattern string) int64 {
	if pattern == imports {
		return api.MaxBaseline
	}
	return api.MaxBody
}

var errUnexpected = errors.New("its response is not what this version of the app expects")

// begin sends the head of an answer.
func begin(w http.ResponseWriter, res *http.Response) {
	w.Header().Set("Content-Type", res.Header.Get("Content-Type"))
	if name := res.Header.Get("Content-Disposition"); name != "" {
		w.Header().Set("Content-Disposition", name)
	}
	w.WriteHeader(res.StatusCode)
}

// reply writes v as JSON. It returns an error if v cannot be encoded; nothing has been sent then.
func reply(w http.ResponseWriter, status int, contentType string, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_, _ = w.Write(body) // a reader that does not read has disconnected
	return nil
}

// role is a Grafana user's role in the organization.
type role string

const (
	viewer role = "Viewer"
	editor role = "Editor"
	admin  role = "Admin"
)

// rank orders the roles. Any other text ranks 0.
func (r role) rank() int { return max(0, slices.Index([]role{viewer, editor, admin}, r)) }

// access is the permission that a call requires.
type access int

// The levels of access. Every user that Grafana admits to the plugin has see.
const (
	configure access = iota // the zero value, so that a missing access requires the most
	operate
	see
)

// may reports whether the user, who may be nil, has the access.
func (a *App) may(u *backend.User, needed access) bool {
	if needed == see {
		return true
	}
	return u != nil && role(u.Role).rank() >= a.least(needed).rank()
}

// least returns the lowest role that has the access.
func (a *App) least(needed access) role {
	switch needed {
	case see:
		return viewer
	case operate:
		return a.settings.OperatorRole
	}
	return admin
}

// login returns the user's name for the events.
func login(u *backend.User) string {
	switch {
	case u == nil:
		return ""
	case u.Login == "":
		return "anonymous"
	}
	return u.Login
}

// caller is the user and their permissions.
type caller struct {
	Login        string `json:"login"`
	Role         string `json:"role"`
	CanOperate   bool   `json:"canOperate"`
	CanConfigure bool   `json:"canConfigure"`
	Configured   bool   `json:"configured"` // false: the load generator's URL is not set
}

// me answers also where the settings are invalid, because the configuration page requires it to correct them.
func (a *App) me(w http.ResponseWriter, r *http.Request) {
	u := backend.PluginConfigFromContext(r.Context()).User
	m := caller{
		CanOperate: a.problem == nil && a.may(u, operate), CanConfigure: a.may(u, configure),
		Configured: !errors.Is(a.problem, errNoURL),
	}
	if u != nil {
		m.Login, m.Role = u.Login, u.Role
	}
	if err := reply(w, http.StatusOK, "application/json", m); err != nil {
		a.fail(w, r, err)
	}
}
