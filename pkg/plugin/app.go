// Package plugin is the backend of the Grafana app. It forwards calls to the load generator after checking the user's
// role. It keeps no state and no files. It provides:
//
//   - settings: the load generator's URL, the token, TLS, and who may operate;
//   - resources: the load generator's own calls, and no others, each for users with the required role
//     ([App.CallResource]);
//   - live channels: the load generator's stream, as JSON for our own panels and as data frames for core panels
//     ([App.RunStream]);
//   - health: what is wrong, with what to do ([App.CheckHealth]).
//
// Grafana creates an [App] per organization, and a new one whenever its settings change.
package plugin

import (
	"context"

	"github.com/grafana/grafana-plugin-sdk-go/backend"
	"github.com/grafana/grafana-plugin-sdk-go/backend/instancemgmt"
	"github.com/grafana/grafana-plugin-sdk-go/backend/resource/httpadapter"

	"kvbooth/sidecar/api"
)

// ID is the plugin's id, as in plugin.json.
const ID = "kvbooth-inference-app"

// App is the app in one organization, with one set of settings. It is safe for
// concurrent use.
type App struct {
	backend.CallResourceHandler

	limits   limits
	settings settings
	problem  error // the error in the settings; nil: they are valid
	client   *api.Client
	relay    *relay
	close    func()        // closes idle connections
	answers  chan struct{} // a token for each buffered answer
	exports  chan struct{} // a token for each running export
}

var (
	_ backend.CallResourceHandler   = (*App)(nil)
	_ backend.CheckHealthHandler    = (*App)(nil)
	_ backend.StreamHandler         = (*App)(nil)
	_ instancemgmt.InstanceDisposer = (*App)(nil)
)

// NewApp returns an [App]. Invalid settings are no error here: Grafana would not show the reason. The app reports
// them in the answer to each call instead.
func NewApp(ctx context.Context, s backend.AppInstanceSettings) (instancemgmt.Instance, error) {
	return newApp(ctx, s, normal), nil
}

func newApp(ctx context.Context, s backend.AppInstanceSettings, t limits) *App {
	a := &App{limits: t, close: func() {}, answers: make(chan struct{}, t.answers), exports: make(chan struct{},
		t.exports)}
	a.settings, a.problem = readSettings(s)
	if a.problem == nil {
		a.client, a.close, a.problem = connect(ctx, s, a.settings)
	}
	if a.problem != nil {
		a.settings.OperatorRole = admin // until the settings are read
	}
	a.CallResourceHandler = httpadapter.New(a.resources())
	a.relay = newRelay(a.stream, a.explain, t)
	return a
}

// Dispose ends everything that the app has started, and waits for its end.
func (a *App) Dispose() {
	a.relay.close()
	a.close()
}
