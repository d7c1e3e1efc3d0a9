// Package plugin is the backend of the Grafana app: a thin, role-checked door to
// the load generator. It keeps no state and no files. What it does:
//
//   - settings: the load generator's URL, the token, TLS, and who may operate;
//   - resources: the load generator's own calls, and no others, each for those
//     whose role allows it ([App.CallResource]);
//   - live channels: what the load generator streams, as JSON for our own panels
//     and as data frames for core panels ([App.RunStream]);
//   - health: what is wrong, in words that say what to do ([App.CheckHealth]).
//
// Grafana makes an [App] per organization, and makes it anew whenever its
// settings change.
package plugin

import (
	"context"

	"github.com/grafana/grafana-plugin-sdk-go/backend"
	"github.com/grafana/grafana-plugin-sdk-go/backend/instancemgmt"
	"github.com/grafana/grafana-plugin-sdk-go/backend/resource/httpadapter"

	"kvbooth/sidecar/api"
)

// ID is the plugin's, as in plugin.json.
const ID = "kvbooth-inference-app"

// App is the app in one organization, with one set of settings. It is safe for
// concurrent use.
type App struct {
	backend.CallResourceHandler

	limits   limits
	settings settings
	problem  error // what is wrong with the settings; nil: nothing
	client   *api.Client
	relay    *relay
	close    func()        // gives up idle connections
	answers  chan struct{} // a word for each answer that is held
	exports  chan struct{} // a word for each export that runs
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
		a.settings.OperatorRole = admin // until it is certain who else may
	}
	a.CallResourceHandler = httpadapter.New(a.resources())
	a.relay = newRelay(a.stream, a.explain, t)
	return a
}

// Dispose ends what the app has started, and waits for its end.
func (a *App) Dispose() {
	a.relay.close()
	a.close()
}
