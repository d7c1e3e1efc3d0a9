package main

import (
	"fmt"
	"strings"

	"kvbooth/sidecar/booth/httpd"
	"kvbooth/sidecar/sim"
)

// engineAddresses are the addresses of `booth cluster --workers-only`, as host:port.
type engineAddresses struct {
	control                  string
	workers, events, replays []string // by worker
}

// portsOfEngine is the number of ports of a worker.
const portsOfEngine = 3

// engines returns what `booth cluster --workers-only` serves.
func (c *clusterCmd) engines(s *httpd.Server) []endpoint {
	control := s.Control()
	if c.BestPlacement {
		control = s.Frontend()
	}
	all := []endpoint{{flag: "port", port: c.Port, handler: control}}
	for i := range s.Workers() {
		publisher := s.Events(i)
		all = append(all,
			endpoint{flag: "worker-port", port: following(c.WorkerPort, i), handler: s.Worker(i)},
			endpoint{flag: "event-port", port: following(c.EventPort, i), serve: publisher.Serve},
			endpoint{flag: "replay-port", port: following(c.ReplayPort, i), serve: publisher.ServeReplay})
	}
	return all
}

// newEngineAddresses returns the addresses of the endpoints of engines.
func newEngineAddresses(taken []string) engineAddresses {
	at := engineAddresses{control: taken[0]}
	for i := 1; i < len(taken); i += portsOfEngine {
		at.workers = append(at.workers, taken[i])
		at.events = append(at.events, taken[i+1])
		at.replays = append(at.replays, taken[i+2])
	}
	return at
}

// enginesHeading describes the workers.
func (c *clusterCmd) enginesHeading(o sim.Options) string {
	return strings.Replace(c.heading(o), fmt.Sprintf(", router mode %s", o.Mode.Name()), ", without a router", 1)
}

func (a *engineAddresses) rows(o sim.Options) [][2]string {
	rows := [][2]string{{"workers", urls("http://", a.workers)}}
	if o.BestPlacement {
		rows = append(rows, [2]string{"best", "http://" + a.control + " places each request where most of it is cached"})
	}
	p := o.Profile
	return append(rows, [][2]string{
		{"model", p.Model},
		{"KV events", fmt.Sprintf("%s, blocks of %d tokens", urls("tcp://", a.events), p.KV.BlockTokens)},
		{"replay", urls("tcp://", a.replays)},
		{"control", "http://" + a.control + "/sim/v1 injects faults and removes workers"},
		{"imitates", "engines, for routers other than Dynamo's; docs/simulated-api.md lists what they support"},
	}...)
}

// urls lists addresses, separated by blanks, as routers take them.
func urls(scheme string, addresses []string) string {
	return scheme + strings.Join(addresses, " "+scheme)
}
