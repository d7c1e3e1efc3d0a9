package main

import (
	"context"

	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/loadgen/cluster"
	"kvbooth/sidecar/loadgen/cluster/router"
)

// setRouting sets the options that concern the router in front of the engines. The error is that of
// [chat.Access.Client].
func setRouting(o *chat.Options, r chat.Routing) error {
	o.WorkerHeaders, o.Session = router.WorkerHeaders(r.WorkerHeader), r.Session
	settings := router.Settings{
		Router: r.Router, WorkerHeader: r.WorkerHeader, Session: r.Session.String(), RequestID: r.RequestID,
	}
	o.Recognize = func(e chat.Evidence) (all chat.Recognized) {
		found, remarks := settings.Identify(router.Evidence(e))
		all.Named = r.Router != ""
		for _, m := range remarks {
			all.Remarks = append(all.Remarks, m.String())
		}
		all.NoRequestID = r.RequestID == "off"
		if found != nil {
			all.Router = found.ID
			all.NoRequestID = all.NoRequestID || r.RequestID != "on" && found.RoutesByRequestID
		}
		return all
	}
	if !r.Direct {
		return nil
	}
	client, err := o.Client()
	if err != nil {
		return err
	}
	frontend := o.URL
	o.Instance = func(ctx context.Context) string {
		instances, err := cluster.Probe(ctx, frontend, client)
		if err != nil || len(instances) == 0 {
			return "" // the target refuses the probe, and its answer is shown
		}
		return instances[0]
	}
	return nil
}
