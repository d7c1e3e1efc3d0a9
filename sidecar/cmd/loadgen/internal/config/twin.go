package config

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/cluster"
	"kvbooth/sidecar/loadgen/cluster/kubernetes"
)

// Twin is a second target, that of the lane [api.TwinLane]. The defaults of empty fields are in the help. The rest of
// the configuration holds for both lanes.
type Twin struct {
	Target     TwinTarget     `embed:"" prefix:"target."`
	Mode       TwinMode       `embed:"" prefix:"mode."`
	Prometheus TwinPrometheus `embed:"" prefix:"prometheus."`
	Cluster    TwinCluster    `embed:"" prefix:"cluster."`
	Deployment Deployment     `embed:"" prefix:"deployment." group:"twin.deployment"`
}

// TwinTarget is the server of the twin. Its timeouts are those of [Target].
type TwinTarget struct {
	URL        string `basic:"" form:"target" placeholder:"URL" help:"Second server, which gets the same conversations as target.url, on the lane twin. With the driver endpoints, twin.mode.mode can select it."`
	Model      string `placeholder:"NAME" help:"Model to request from it. Default: target.model, else the first one in its /v1/models."`
	APIKey     Secret `kong:"-"`
	APIKeyFile string `form:"path" placeholder:"FILE" help:"File with its API key. Or set LOADGEN_TWIN_TARGET_API_KEY. It gets the key for target.url only as one of mode.endpoints."`
	Access     `embed:""`
}

// TwinMode is the mode of the twin's cluster, and how it is switched.
type TwinMode struct {
	Driver      string   `oneof:"manual pinned endpoints command http kubernetes simulated" help:"How its mode is switched. Default: mode.driver."`
	Mode        string   `oneof:"kv round_robin least_loaded unknown" help:"Its routing mode at start, as mode.mode. Default: with endpoints, the mode at twin.target.url, else with endpoints and pinned another one than that of lane main, else unknown."`
	Speculation string   `oneof:"off draft eagle3 not_recorded" help:"Its speculative decoding at start. Default: mode.speculation."`
	Offers      []string `form:"offer" placeholder:"MODE" help:"Modes an operator may switch it to with the drivers manual and kubernetes. Default: mode.offers."`
	Endpoints   []string `form:"endpoint" placeholder:"MODE=URL" help:"URL of each of its modes for the driver endpoints. Default: mode.endpoints, of which the lanes use two different ones."`

	Arm string `placeholder:"NAME" help:"Arm that it begins with, at the same time as lane main has another one. Only arms that share no engine can run so."`

	Kubernetes TwinKubernetes `embed:"" prefix:"kubernetes."`
}

// TwinKubernetes names the twin's DynamoGraphDeployment. The rest is that of [Kubernetes].
type TwinKubernetes struct {
	Name      string `placeholder:"NAME" help:"DynamoGraphDeployment of the twin. Default: the one whose frontend Service twin.target.url points to."`
	Namespace string `placeholder:"NAME" help:"Its namespace. Default: mode.kubernetes.namespace."`
}

// TwinPrometheus separates the twin's cluster from that of lane main in the server of [Prometheus].
type TwinPrometheus struct {
	Namespace string `placeholder:"NAME" help:"Namespace of its cluster in the Prometheus at prometheus.url; may be prometheus.namespace where both DynamoGraphDeployments are known. Without it, metrics are scraped from its target and twin.cluster.metrics_urls."`
}

// TwinCluster has the addresses of the twin's metrics without a Prometheus.
type TwinCluster struct {
	MetricsURLs []string `name:"metrics_urls" form:"page" placeholder:"URL" help:"Metrics URLs of its workers and their GPUs, besides its target's own; no-target as in cluster.metrics_urls."`
}

// fillTwin sets the twin's address by its mode, where the driver endpoints has an address for it.
func (c *Config) fillTwin() {
	t := c.Twin
	if len(c.Mode.Served) > 0 && t.Mode.Arm != "" {
		c.fillTwinArm()
		return
	}
	if t.Target.URL != "" || t.driver(c) != "endpoints" || t.Mode.Mode == "" && len(t.Mode.Endpoints) == 0 {
		return
	}
	c.Twin.Target.URL = t.mode(c).Address()
}

// fillTwinArm takes the twin's address from its arm; an unknown one is left for checkTwin.
func (c *Config) fillTwinArm() {
	if a, err := c.Mode.servedAs("twin.mode.arm", c.Twin.Mode.Arm); err == nil && c.Twin.Target.URL == "" {
		c.Twin.Target.URL = a.URL
	}
}

func (t Twin) driver(c *Config) string { return cmp.Or(t.Mode.Driver, c.Mode.Driver) }

// borrows reports whether the twin's addresses are those of mode.endpoints.
func (t Twin) borrows(c *Config) bool {
	return t.driver(c) == "endpoints" && c.Mode.Driver == "endpoints" && len(t.Mode.Endpoints) == 0
}

// mode returns the twin's mode, completed by defaults.
func (t Twin) mode(c *Config) Mode {
	m := Mode{
		Driver: t.driver(c), Mode: cmp.Or(t.Mode.Mode, string(api.ModeUnknown)), Speculation: cmp.Or(t.Mode.Speculation,
			c.Mode.Speculation),
		Offers: t.Mode.Offers, Endpoints: t.Mode.Endpoints, Kubernetes: c.Mode.Kubernetes,
	}
	m.Kubernetes.Name, m.Kubernetes.Selector = t.Mode.Kubernetes.Name, ""
	m.Kubernetes.Namespace = cmp.Or(t.Mode.Kubernetes.Namespace, c.Mode.Kubernetes.Namespace)
	if len(m.Offers) == 0 {
		m.Offers = c.Mode.Offers
	}
	if t.borrows(c) {
		m.Endpoints, m.Served, m.arms = c.Mode.Endpoints, c.Mode.Served, c.Mode.arms
	}
	if a, err := m.twinArm(t); err == nil {
		m.take(a)
		return m
	}
	if t.Mode.Mode == "" {
		m.Mode = m.besides(t.Target.URL, c.Mode.Mode)
	}
	return m
}

// twinArm is the arm of the twin at its start.
func (m Mode) twinArm(t Twin) (cluster.Arm, error) {
	if t.Mode.Arm == "" || len(m.Served) == 0 {
		return cluster.Arm{}, errForm
	}
	return m.servedAs("twin.mode.arm", t.Mode.Arm)
}

// besides is the mode at the start of a twin whose configuration names none, beside the
// mode of the lane main.
func (m Mode) besides(target, main string) string {
	switch m.Driver {
	case "pinned":
		if main == string(api.ModeKV) {
			return string(api.ModeRoundRobin)
		}
		return string(api.ModeKV)
	case "endpoints":
		for _, e := range m.Addresses() {
			if e.URL == target || target == "" && string(e.State.Mode) != main {
				return string(e.State.Mode)
			}
		}
	}
	return string(api.ModeUnknown)
}

// ForTwin returns the configuration of the lane [api.TwinLane]: its own target, mode and metrics replace those of the
// lane main. It is nil where there is one lane.
func (c *Config) ForTwin() *Config {
	t := c.Twin
	if t.Target.URL == "" {
		return nil
	}
	own := *c
	own.Target.Router = ""
	own.Target.URL, own.Target.Model = t.Target.URL, cmp.Or(t.Target.Model, c.Target.Model)
	if !t.borrows(c) || t.Target.APIKey != "" {
		own.Target.APIKey = t.Target.APIKey
	}
	if !t.borrows(c) || t.Target.isSet() {
		own.Target.Access = t.Target.Access
	}
	own.Mode, own.Cluster.MetricsURLs = t.mode(c), t.Cluster.MetricsURLs
	own.Deployment = or(t.Deployment, c.Deployment)
	own.Prometheus = Prometheus{}
	if t.Prometheus.Namespace != "" {
		own.Prometheus = Prometheus{URL: c.Prometheus.URL, Namespace: t.Prometheus.Namespace}
		if t.Prometheus.Namespace == c.Prometheus.Namespace {
			own.Prometheus.Graph, own.Prometheus.Beside = own.graph(), c.graph()
		}
	}
	return &own
}

// graph returns the DynamoGraphDeployment behind the target. It is empty if neither its name nor the
// target's address determines it.
func (c *Config) graph() string {
	return cmp.Or(c.Mode.Kubernetes.Name, kubernetes.GraphOf(c.Target.URL))
}

// fillGraphs sets the DynamoGraphDeployments of both lanes where they share a namespace of one Prometheus.
func (c *Config) fillGraphs() {
	if own := c.ForTwin(); own != nil {
		c.Prometheus.Graph, c.Prometheus.Beside = own.Prometheus.Beside, own.Prometheus.Graph
	}
}

// isSet reports whether any field of the twin has a value.
func (t Twin) isSet() bool { return !reflect.ValueOf(t).IsZero() }

// checkTwin requires a target other than lane main's, a mode that its driver can return to, and
// metrics that are separable from main's.
func (c *Config) checkTwin() error {
	own := c.ForTwin()
	switch {
	case c.Compare != nil, c.Member: // a member's twin is named by the coordinator
		return nil
	case own == nil && c.Twin.Mode.Arm != "": // which has no address only if it is unknown
		_, err := c.Mode.servedAs("twin.mode.arm", c.Twin.Mode.Arm)
		return err
	case own == nil && c.Twin.isSet():
		return api.Require("twin.target.url", forms["target"].allowed+", since other twin fields are set; with the "+
			"driver endpoints, twin.mode.mode can select one of mode.endpoints instead")
	case own == nil:
		return nil
	case len(c.Mode.Served) > 0 && c.Mode.Driver != "endpoints":
		return api.Refuse("twin.mode.arm", c.Twin.Mode.Arm, "leave it out where arms are switched: only arms with a url of "+
			"their own can run at the same time")
	case len(c.Mode.Served) > 0 && c.Twin.borrows(c):
		return c.checkTwinArm(own)
	case c.Twin.borrows(c) && own.Target.URL == c.Target.URL:
		return api.Refuse("twin.mode.mode", own.Mode.Mode, fmt.Sprintf("a mode with a different URL than lane main, %s",
			c.Target.URL))
	case own.Target.URL == c.Target.URL:
		return api.Refuse("twin.target.url", own.Target.URL, "a different server than target.url")
	}
	if err := own.checkMode(); err != nil {
		return ofTwin(err)
	}
	return c.checkTwinMetrics()
}

// checkTwinArm requires an arm of the configuration at another address than lane main's.
func (c *Config) checkTwinArm(own *Config) error {
	if _, err := c.Mode.servedAs("twin.mode.arm", c.Twin.Mode.Arm); err != nil {
		return err
	}
	if own.Mode.Arm == "" || own.Target.URL == c.Target.URL {
		return api.Refuse("twin.mode.arm", c.Twin.Mode.Arm, "an arm with another url than that of lane main, "+c.Target.URL)
	}
	return c.checkTwinMetrics()
}

// checkTwinMetrics rejects metrics of two clusters that cannot be separated.
func (c *Config) checkTwinMetrics() error {
	n := c.Twin.Prometheus.Namespace
	switch {
	case n != "" && c.Prometheus.URL == "":
		return api.Refuse("twin.prometheus.namespace", n, "set prometheus.url, too, or leave it empty")
	case c.Prometheus.URL == "":
		return nil
	case c.Prometheus.Namespace == "":
		return api.Require("prometheus.namespace",
			"the namespace of lane main's cluster, to separate its metrics from those of lane twin")
	case n == c.Prometheus.Namespace && (c.Prometheus.Graph == "" || c.Prometheus.Beside == "" ||
		c.Prometheus.Graph == c.Prometheus.Beside):
		return api.Refuse("twin.prometheus.namespace", n, "a different namespace than prometheus.namespace; "+
			"or set mode.kubernetes.name and twin.mode.kubernetes.name, whose pods' names separate them; "+
			"or leave it empty to scrape its target and twin.cluster.metrics_urls")
	}
	return nil
}

// ofTwin renames the field in an error of a check that both lanes have.
func ofTwin(err error) error {
	bad := new(api.FieldError)
	if errors.As(err, &bad) && slices.ContainsFunc([]string{"mode.", "target."},
		func(section string) bool { return strings.HasPrefix(bad.Field, section) }) {
		return &api.FieldError{Field: "twin." + bad.Field, Value: bad.Value, Allowed: strings.ReplaceAll(bad.Allowed,
			"mode.endpoints", "twin.mode.endpoints")}
	}
	return err
}
