// The backend of the Grafana app KV Booth. Grafana starts it.
package main

import (
	"os"

	"github.com/grafana/grafana-plugin-sdk-go/backend"
	"github.com/grafana/grafana-plugin-sdk-go/backend/app"

	"kvbooth/pkg/plugin"
)

func main() {
	if err := app.Manage(plugin.ID, plugin.NewApp, app.ManageOpts{}); err != nil {
		backend.Logger.Error("plugin failed to serve", "error", err)
		os.Exit(1)
	}
}
