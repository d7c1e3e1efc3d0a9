package config

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/cluster"
)

// Arm is one way of serving, as an entry of [Config.Arms]. Its empty fields are those of the target and of the cluster.
type Arm struct {
	Name        string          `json:"name" form:"arm_name"`
	Mode        api.Mode        `json:"mode,omitempty" oneof:"kv round_robin least_loaded unknown"` // empty: compared with no recorded results
	Speculation api.Speculation `json:"speculation,omitempty" oneof:"off draft eagle3 not_recorded"`
	Server      `embed:""`
	MetricsURLs []string `json:"metrics_urls,omitempty" name:"metrics_urls" form:"page"`
	Note        string   `json:"note,omitempty" form:"text"` // for the reports of its spans
}

// sameServer reports whether two arms send the same requests to one address.
func (a Arm) sameServer(b Arm) bool { return reflect.DeepEqual(a.Server, b.Server) }

// own reports whether turns of the arm need a client of their own: it has more than an address and headers.
func (a Arm) own() bool {
	a.URL, a.Headers = "", nil
	return !reflect.ValueOf(a.Server).IsZero()
}

// At returns the configuration of the target behind an arm. own reports whether it differs from that of the others by
// more than address and headers.
func (c *Config) At(served cluster.Arm) (at *Config, own bool) {
	copied := *c
	at = &copied
	at.Target.URL = served.URL
	i := slices.IndexFunc(c.Mode.arms, func(a Arm) bool { return a.Name == served.State.Arm })
	if i < 0 {
		return at, false
	}
	a := c.Mode.arms[i]
	at.Target.Server = or(a.Server, c.Target.Server)
	at.Target.URL, at.Target.Headers = served.URL, c.Target.Headers
	if len(a.MetricsURLs) > 0 {
		at.Cluster.MetricsURLs = a.MetricsURLs
	}
	return at, a.own()
}

// or returns a struct whose empty fields, also those of structs in it, are those of another.
func or[T any](own, other T) T {
	fill(reflect.ValueOf(&own).Elem(), reflect.ValueOf(other))
	return own
}

func fill(to, from reflect.Value) {
	for i := range to.NumField() {
		switch field := to.Field(i); {
		case field.Kind() == reflect.Struct:
			fill(field, from.Field(i))
		case field.IsZero():
			field.Set(from.Field(i))
		}
	}
}

// SharesMetrics reports whether the metrics of an arm's cluster may be those of other arms, too.
func (c *Config) SharesMetrics(arm string) bool {
	i := slices.IndexFunc(c.Mode.arms, func(a Arm) bool { return a.Name == arm })
	return i >= 0 && len(c.Mode.arms) > 1 && len(c.Mode.arms[i].MetricsURLs) == 0
}

// Switch says how the cluster is changed from one arm to another.
type Switch struct {
	Command Program       `basic:"" placeholder:"PROGRAM" help:"Program that makes an arm serve, with its arguments: a list, or words between spaces. {arm}, {url} and {mode} stand for the arm, and KVBOOTH_ARM, KVBOOTH_URL, KVBOOTH_MODE and KVBOOTH_FORMER_ARM are set. Lines that it prints become events. If it fails or is cancelled, it runs again for the former arm."`
	HTTP    Call          `name:"http" placeholder:"REQUEST" help:"HTTP request in place of a program: method, url, headers (as in target.headers) and body, or METHOD URL. The same words in braces stand for the arm, escaped in path and query."`
	Timeout time.Duration `default:"10m" min:"1s" max:"6h" help:"Timeout for a switch until the arm is ready. It is then rolled back; the rollback has the same timeout."`
	Ready   Ready         `embed:"" prefix:"ready."`
	InPlace bool          `negatable:"" help:"A switch takes less than 5 s, ends no turn in flight and keeps workers and caches, as that of a router's policy over its API. Turns then go on during it, and a trial can change the arm within one run (caches)."`

	Request *cluster.Request `kong:"-"` // HTTP, with what files and variables contain; nil: none
}

// Ready says when an arm that was switched to is ready.
type Ready struct {
	URL   string `form:"arm_url" placeholder:"URL" help:"URL that answers with a status of 200 to 299 once the arm is ready. Default: the arm's own answers decide."`
	Turns int    `default:"1" min:"1" max:"1000" help:"Answers that the arm must give in a row before turns go to it."`
}

// Cold says how the caches of the workers are emptied.
type Cold struct {
	HTTP Calls `name:"http" placeholder:"REQUEST" help:"HTTP requests, as in switch.http, that empty the caches before a measured span. One with {worker} goes to the host and port of each URL in cluster.metrics_urls. Default: none; a nonce makes the prefixes cold."`

	Requests []cluster.Request `kong:"-"` // HTTP, with what files and variables contain
}

// armsDriver returns the driver that the arms need, and why they cannot have one.
func (c *Config) armsDriver() (string, error) {
	switch {
	case len(c.Switch.Command) > 0 && c.Switch.HTTP.URL != "":
		return "", api.Refuse("switch.http", c.Switch.HTTP, "leave it empty if switch.command is set")
	case len(c.Switch.Command) > 0:
		return "command", nil
	case c.Switch.HTTP.URL != "":
		return "http", nil
	}
	var shared []string // pairs of arms at one endpoint
	arms := c.Arms
	for i, a := range arms {
		for _, b := range arms[:i] {
			if a.sameServer(b) {
				shared = append(shared, b.Name+" and "+a.Name)
			}
		}
	}
	switch {
	case len(shared) == 0:
		return "endpoints", nil
	case len(shared) == len(arms)*(len(arms)-1)/2:
		return "manual", nil
	}
	return "", api.Refuse("arms", shared[0]+" with the same url and headers", "set switch.command or switch.http, which "+
		"makes an arm serve; or give each arm a url, headers, a model or a session of its own")
}

// plainServer is the only arm of a sweep or a search of one server as it is.
const plainServer = "server"

// isPlainServer reports whether a sweep or a search is of the target as it is: nothing says what else it could do.
func (l *loader) isPlainServer(ctx *kong.Context) bool {
	command := commandOf(ctx)
	return (command == Levels || command == Capacity) && l.asksNothingOfModes(explicitly(ctx), command)
}

// asksNothingOfModes reports whether no source sets arms, a driver, a mode or a twin.
func (l *loader) asksNothingOfModes(explicit map[*kong.Value]bool, command Command) bool {
	fields := []field{l.own[command]["modes"]}
	for _, name := range []string{
		"arms", "mode.driver", "mode.mode", "mode.offers", "mode.endpoints", "twin.target.url", "twin.mode.driver",
	} {
		fields = append(fields, l.byName[name])
	}
	return !slices.ContainsFunc(fields, func(f field) bool { return explicit[f.flag.Value] })
}

// takeArms resolves the arms of the configuration, and sets the fields that follow from them.
func (l *loader) takeArms(c *Config) error {
	if len(c.Arms) == 0 {
		return l.checkNoArms(c)
	}
	if !slices.Contains([]string{"manual", "endpoints", "command", "http"}, c.Mode.Driver) {
		return api.Refuse("mode.driver", c.Mode.Driver, "leave it out with arms; the arms of this driver are its modes")
	}
	if len(c.Mode.Endpoints) > 0 {
		return api.Refuse("mode.endpoints", strings.Join(c.Mode.Endpoints, ","),
			"leave it out with arms, which have a url each")
	}
	driver, err := c.armsDriver()
	if err != nil {
		return err
	}
	if c.Mode.Driver != "manual" && c.Mode.Driver != driver {
		return api.Refuse("mode.driver", c.Mode.Driver, driver+", as the arms and switch.* say; or leave it out")
	}
	c.Mode.Driver, c.Mode.Served, c.Mode.arms = driver, nil, nil
	if err := l.checkUnused(c); err != nil {
		return err
	}
	for i, e := range c.Arms {
		served, err := l.openArm(c, fmt.Sprintf("arms[%d].", i), &e)
		if err != nil {
			return err
		}
		c.Mode.Served, c.Mode.arms = append(c.Mode.Served, served), append(c.Mode.arms, e)
	}
	if err := c.startArm(); err != nil {
		return err
	}
	if err := l.openRequests(c); err != nil {
		return err
	}
	return c.checkSwitch()
}

// Note returns the note of an arm, or "".
func (c *Config) Note(arm string) string {
	i := slices.IndexFunc(c.Mode.arms, func(a Arm) bool { return a.Name == arm })
	if i < 0 {
		return ""
	}
	return c.Mode.arms[i].Note
}

// openArm reads the files of an arm, and returns what the driver has of it. field is the path of the arm.
func (l *loader) openArm(c *Config, field string, a *Arm) (served cluster.Arm, err error) {
	served = cluster.Arm{
		State: api.ModeState{
			Arm: a.Name, Mode: cmp.Or(a.Mode, api.ModeUnknown),
			Speculation: cmp.Or(a.Speculation, api.Speculation(c.Mode.Speculation)),
		},
		URL: cmp.Or(a.URL, c.Target.URL),
	}
	if a.URL != "" {
		served.Field = field + "url"
	}
	if served.URL == "" {
		return served, api.Require(field+"url", allowedTarget+"; or set target.url, which arms without a url share")
	}
	if err := l.openAccess(field, &a.Access); err != nil {
		return served, err
	}
	served.Headers, a.Opened.Headers = a.Opened.Headers, nil
	key := secret{field + "api_key", 1, 4096, &a.APIKey, a.APIKeyFile}
	read, err := l.readSecret(key)
	a.APIKey = Secret(read.value)
	return served, cmp.Or(err, key.check())
}

// openRequests reads the headers of the requests in switch.http and cold.http.
func (l *loader) openRequests(c *Config) error {
	if c.Switch.HTTP.URL != "" {
		r, err := l.openCall("switch.http", c.Switch.HTTP)
		if err != nil {
			return err
		}
		c.Switch.Request = &r
	}
	for i, call := range c.Cold.HTTP {
		r, err := l.openCall(fmt.Sprintf("cold.http[%d]", i), call)
		if err != nil {
			return err
		}
		c.Cold.Requests = append(c.Cold.Requests, r)
	}
	return nil
}

func (l *loader) openCall(field string, c Call) (r cluster.Request, err error) {
	r = cluster.Request{Method: c.Method, URL: c.URL, Body: c.Body}
	r.Headers, err = l.readHeaders(field+".headers", c.Headers)
	return r, err
}

// checkNoArms refuses what only arms have. The driver endpoints checks an address without arms, too.
func (l *loader) checkNoArms(c *Config) error {
	if c.Mode.Driver == "command" || c.Mode.Driver == "http" {
		return api.Require("arms", c.Arms.Allowed()+"; mode.driver "+c.Mode.Driver+" switches them")
	}
	only := []string{
		"switch.command", "switch.http", "switch.timeout", "switch.ready.url", "switch.in_place", "cold.http", "mode.arm",
		"twin.mode.arm",
	}
	if c.Mode.Driver != "endpoints" && c.Twin.driver(c) != "endpoints" {
		only = append(only, "switch.ready.turns")
	}
	return l.refuseSet("leave it out without arms, or name the arms (arms)", only...)
}

// checkUnused refuses what has no effect with the driver of the arms. A twin with a driver of its own may use it.
func (l *loader) checkUnused(c *Config) error {
	if c.Twin.Mode.Driver != "" {
		return nil
	}
	if err := l.refuseSet("leave it out with arms, which are what is on offer", "mode.offers"); err != nil {
		return err
	}
	switch c.Mode.Driver {
	case "manual":
		return l.refuseSet("leave it out where arms are switched by hand, or set switch.command or switch.http",
			"switch.timeout", "switch.ready.url", "switch.ready.turns", "switch.in_place", "cold.http")
	case "endpoints":
		return l.refuseSet("leave it out with arms that have a url or headers of their own; they are not switched",
			"switch.timeout", "switch.ready.url", "switch.in_place")
	}
	return nil
}

// refuseSet refuses the first of the fields that has another value than its default.
func (l *loader) refuseSet(allowed string, names ...string) error {
	for _, name := range names {
		f := l.byName[name]
		unset := reflect.New(f.flag.Target.Type()).Elem()
		if f.flag.HasDefault {
			if err := f.set(unset, f.flag.Default); err != nil {
				return err
			}
		}
		if value := format(f.flag.Target); value != format(unset) {
			return api.Refuse(name, value, allowed)
		}
	}
	return nil
}

// startArm sets the mode in force at the start: the only arm that has mode.mode. Without mode.mode it is mode.arm or
// the first arm, if the arms serve at any time. If they are switched, the one that serves is not known.
func (c *Config) startArm() error {
	named := api.ModeState{Mode: api.Mode(c.Mode.Mode)}
	if c.Mode.Speculation != string(api.SpeculationNotRecorded) {
		named.Speculation = api.Speculation(c.Mode.Speculation)
	}
	named = named.Resolve(c.Mode.States())
	if c.Mode.Arm == "" && named.Mode != api.ModeUnknown && named.Arm == "" {
		return api.Refuse("mode.mode", c.Mode.Mode, "a mode that exactly one arm has, or leave it out ("+
			strings.Join(c.Mode.armNames(), ", ")+")")
	}
	if c.Mode.Driver != "endpoints" {
		if c.Mode.Arm != "" {
			return api.Refuse("mode.arm", c.Mode.Arm, "leave it out where arms are switched; which one serves is not known at "+
				"the start")
		}
		first, err := c.Mode.servedAs("mode.mode", named.Arm)
		if named.Arm != "" {
			c.Mode.take(first)
		}
		c.Target.URL = cmp.Or(c.Target.URL, first.URL)
		return err
	}
	start, err := c.Mode.servedAs("mode.arm", cmp.Or(c.Mode.Arm, named.Arm))
	if err != nil {
		return err
	}
	c.Mode.take(start)
	c.Target.URL = cmp.Or(c.Target.URL, start.URL)
	return nil
}

// servedAs finds an arm by its name; an empty one is the first.
func (m Mode) servedAs(field, name string) (cluster.Arm, error) {
	if name == "" {
		return m.Served[0], nil
	}
	for _, a := range m.Served {
		if a.State.Arm == name {
			return a, nil
		}
	}
	return cluster.Arm{}, api.Refuse(field, name, "one of the arms ("+strings.Join(m.armNames(), ", ")+")")
}

func (m Mode) armNames() (names []string) {
	for _, a := range m.Served {
		names = append(names, a.State.Arm)
	}
	return names
}

// take sets the mode in force to that of an arm.
func (m *Mode) take(a cluster.Arm) {
	m.Arm, m.Mode, m.Speculation = a.State.Arm, string(a.State.Mode), string(a.State.Speculation)
}

// checkSwitch refuses a program that cannot be run, and requests to workers that are not known.
func (c *Config) checkSwitch() error {
	if words := c.Switch.Command; len(words) > 0 {
		if _, err := exec.LookPath(words[0]); err != nil {
			reason := err
			if inner := new(exec.Error); errors.As(err, &inner) {
				reason = inner.Err
			}
			return api.Refuse("switch.command", words[0], fmt.Sprintf("a program that can be run (%v)", reason))
		}
	}
	for _, r := range c.Cold.Requests {
		if r.Uses("{worker}") && len(c.Workers()) == 0 {
			return api.Refuse("cold.http", r.URL,
				"a URL without {worker}; or set cluster.metrics_urls, whose hosts are the workers")
		}
	}
	return nil
}

// The placeholders that stand for an arm in switch.command and switch.http, and those of cold.http.
var (
	armPlaceholders  = []string{"{arm}", "{url}", "{mode}"}
	coldPlaceholders = append([]string{"{worker}"}, armPlaceholders...)
)

// placeholder is a word in braces. A variable of a shell, ${NAME}, is none.
var placeholder = regexp.MustCompile(`\$?\{[A-Za-z_]+\}`)

// checkPlaceholders refuses a placeholder that is not among the filled ones.
func checkPlaceholders(field, text string, filled []string) error {
	for _, word := range placeholder.FindAllString(text, -1) {
		if !strings.HasPrefix(word, "$") && !slices.Contains(filled, word) {
			return api.Refuse(field, word, inBraces(filled))
		}
	}
	return nil
}

func inBraces(filled []string) string { return "in braces only " + enumerate(filled) }

// checkTemplate refuses what is not a URL, possibly with a query, once the filled placeholders are replaced, and all
// other placeholders.
func checkTemplate(field, s string, filled []string) error {
	if err := checkPlaceholders(field, s, filled); err != nil {
		return err
	}
	examples := strings.NewReplacer("{worker}", "worker:1", "{url}", "http://arm:1", "{arm}", "arm", "{mode}", "kv")
	address, _, _ := strings.Cut(examples.Replace(s), "?")
	if _, err := readURL(address); err != nil {
		return api.Refuse(field, shownURL(s),
			allowedURL("an http:// or https:// URL with a host, without user or fragment; "+inBraces(filled), err))
	}
	return nil
}

// Workers are the addresses that {worker} stands for in requests: the hosts and ports of cluster.metrics_urls and of
// the metrics_urls of the arms.
func (c *Config) Workers() (hosts []string) {
	pages := slices.Clone(c.Cluster.MetricsURLs)
	for _, a := range c.Mode.arms {
		pages = append(pages, a.MetricsURLs...)
	}
	for _, page := range pages {
		if u, err := url.Parse(page); err == nil && u.Host != "" && !slices.Contains(hosts, u.Host) {
			hosts = append(hosts, u.Host)
		}
	}
	return hosts
}
