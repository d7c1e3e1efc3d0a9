package main

import (
	"context"

	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/loadgen/cluster"
	"kvbooth/sidecar/loadgen/cluster/router"
	"kvbooth/sidecar/loadgen/members"
)

// setRouting sets the options that concern the router in front of the engines. The error is that of
// [chat.Access.Client].
func setRouting(o *chat.Options, r members.Routing) error {
	o.WorkerHeaders, o.Session = router.WorkerHeaders(), r.Session
	if r.WorkerHeader != "" {
		o.WorkerHeaders = append([]string{r.WorkerHeader, router.LiteLLMPrefix + r.WorkerHeader}, o.WorkerHeaders...)
	}
	o.Recognize = func(e chat.Evidence) chat.Recognized {
		found := router.ByID(r.Router)
		if found == nil {
			found = router.Recognize(router.Evidence(e))
		}
		if found == nil {
			return chat.Recognized{NoRequestID: r.RequestID == "off"}
		}
		return chat.Recognized{
			Router:      found.ID,
			NoRequestID: r.RequestID == "off" || r.RequestID != "on" && found.RoutesByRequestID,
		}
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
