package main

import (
	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/loadgen/cluster/router"
	"kvbooth/sidecar/loadgen/members"
)

// setRouting sets the options that concern the router in front of the engines.
func setRouting(o *chat.Options, r members.Routing) {
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
}
