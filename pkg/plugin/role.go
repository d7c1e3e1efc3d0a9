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

// rank orders the roles. Whatever is no role that may do anything is 0.
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
	configure access = iota // first, so that a forgotten one asks for the most
	operate
	see
)

// may says whether the user, who may be nil, has the access.
func (a *App) may(u *backend.User, needed access) bool {
	if needed == see {
		return true
	}
	return u != nil && role(u.Role).rank() >= a.least(needed).rank()
}

// least is the least role that has the access.
func (a *App) least(needed access) role {
	switch needed {
	case see:
		return viewer
	case operate:
		return a.settings.OperatorRole
	}
	return admin
}

// login is the name that the events get.
func login(u *backend.User) string {
	switch {
	case u == nil:
		return ""
	case u.Login == "":
		return "anonymous"
	}
	return u.Login
}

// caller is who asks, and what they may do.
type caller struct {
	Login        string `json:"login"`
	Role         string `json:"role"`
	CanOperate   bool   `json:"canOperate"`
	CanConfigure bool   `json:"canConfigure"`
	Configured   bool   `json:"configured"` // false: the load generator's URL is not set
}

// me answers whether the settings are right or wrong: the configuration page
// needs it to mend them.
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
