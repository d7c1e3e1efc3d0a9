package plugin

import (
	"errors"
	"net/http"

	"github.com/grafana/grafana-plugin-sdk-go/backend"
)

// role is a Grafana user's role in the organization.
type role string

const (
	viewer role = "Viewer"
	editor role = "Editor"
	admin  role = "Admin"
)

// rank orders the roles. Any other text ranks 0.
func (r role) rank() int {
	switch r {
	case editor:
		return 1
	case admin:
		return 2
	}
	return 0
}

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
