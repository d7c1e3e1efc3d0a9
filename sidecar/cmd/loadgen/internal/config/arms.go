package config

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os/exec"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/cluster"
)

// Arm is one way of serving, as an entry of [Config.Arms] has it.
type Arm struct {
	Name        string            `json:"name"`
	URL         string            `json:"url,omitempty"`         // empty: that of target.url
	Headers     map[string]string `json:"headers,omitempty"`     // a value may be file:PATH or env:VARIABLE
	Mode        api.Mode          `json:"mode,omitempty"`        // empty: compared with no recorded results
	Speculation api.Speculation   `json:"speculation,omitempty"` // empty: that of mode.speculation
	Route
	MetricsURLs []string `json:"metrics_urls,omitempty"` // empty: those of cluster.metrics_urls
}

// sameServer reports whether two arms send the same requests to one address.
func (a Arm) sameServer(b Arm) bool {
	return a.URL == b.URL && maps.Equal(a.Headers, b.Headers) && a.Route == b.Route
}

// At returns the configuration of the target behind an arm.
func (c *Config) At(served cluster.Arm) *Config {
	at := *c
	at.Target.URL = served.URL
	i := slices.IndexFunc(c.Mode.arms, func(a Arm) bool { return a.Name == served.State.Arm })
	if i < 0 {
		return &at
	}
	a := c.Mode.arms[i]
	at.Target.Route = Route{
		Model: cmp.Or(a.Model, c.Target.Model), APIKey: cmp.Or(a.APIKey, c.Target.APIKey),
		APIKeyFile: cmp.Or(a.APIKeyFile, c.Target.APIKeyFile),
		Router:     cmp.Or(a.Router, c.Target.Router), WorkerHeader: cmp.Or(a.WorkerHeader, c.Target.WorkerHeader),
		Session: cmp.Or(a.Session, c.Target.Session), RequestID: cmp.Or(a.RequestID, c.Target.RequestID),
	}
	if len(a.MetricsURLs) > 0 {
		at.Cluster.MetricsURLs = a.MetricsURLs
	}
	return &at
}

// SharesMetrics reports whether the metrics of an arm's cluster may be those of other arms, too.
func (c *Config) SharesMetrics(arm string) bool {
	i := slices.IndexFunc(c.Mode.arms, func(a Arm) bool { return a.Name == arm })
	return i >= 0 && len(c.Mode.arms) > 1 && len(c.Mode.arms[i].MetricsURLs) == 0
}

// Switch says how the cluster is changed from one arm to another.
type Switch struct {
	Command string        `basic:"" form:"command" placeholder:"PROGRAM" help:"Program that makes an arm serve, with its arguments: a list in the file, or words between spaces. {arm}, {url} and {mode} stand for the arm; KVBOOTH_ARM, KVBOOTH_URL, KVBOOTH_MODE and KVBOOTH_FORMER_ARM are set. Each line that it prints becomes an event. If it fails or is cancelled, it runs again for the former arm."`
	HTTP    string        `name:"http" form:"request" placeholder:"REQUEST" help:"HTTP request in place of a program: method, url, headers (values as in target.headers) and body in the file, or METHOD URL. The same words in braces stand for the arm; they are escaped in the path and the query of the URL."`
	Timeout time.Duration `default:"10m" min:"1s" max:"6h" help:"Timeout for a switch until the arm is ready. It is then rolled back; the rollback has the same timeout."`
	Ready   Ready         `embed:"" prefix:"ready."`
	InPlace bool          `negatable:"" help:"A switch takes less than 5 s, ends no turn in flight and keeps the workers with their caches, as that of a router's policy over its API. Turns then go on during a switch by hand, and a trial can change the arm within one run (caches)."`

	Opened map[string]string `kong:"-"` // headers of HTTP, with what files and variables contain
}

// Ready says when an arm that was switched to is ready.
type Ready struct {
	URL   string `form:"arm_url" placeholder:"URL" help:"URL that answers with a status of 200 to 299 once the arm is ready, with the words in braces of switch.http. Default: the arm's own answers decide."`
	Turns int    `default:"1" min:"1" max:"1000" help:"Answers that the arm must give in a row before turns go to it."`
}

// Cold says how the caches of the workers are emptied.
type Cold struct {
	HTTP string `name:"http" form:"requests" placeholder:"REQUEST" help:"HTTP requests that empty the caches before a measured span: a list of requests as in switch.http. One whose URL has {worker} goes to the host and port of each URL in cluster.metrics_urls. Default: none; a nonce in the prompts makes the prefixes cold."`

	Opened []map[string]string `kong:"-"` // headers of each request, as of [Switch.Opened]
}

// armsDriver returns the driver that the arms need, and why they cannot have one.
func (c *Config) armsDriver() (string, error) {
	switch {
	case c.Switch.Command != "" && c.Switch.HTTP != "":
		return "", api.Refuse("switch.http", c.Switch.HTTP, "leave it empty if switch.command is set")
	case c.Switch.Command != "":
		return "command", nil
	case c.Switch.HTTP != "":
		return "http", nil
	}
	var shared []string // pairs of arms at one endpoint
	arms := c.entries()
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

// entries are the arms as they are written, which have their form.
func (c *Config) entries() (arms []Arm) {
	if c.Arms != "" {
		_ = json.Unmarshal([]byte(c.Arms), &arms) // as readArms made it
	}
	return arms
}

// takeArms resolves the arms of the configuration, and sets the fields that follow from them.
func (l *loader) takeArms(c *Config) error {
	entries := c.entries()
	if len(entries) == 0 {
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
	for i, e := range entries {
		field := fmt.Sprintf("arms[%d].", i)
		a := cluster.Arm{
			State: api.ModeState{
				Arm: e.Name, Mode: cmp.Or(e.Mode, api.ModeUnknown),
				Speculation: cmp.Or(e.Speculation, api.Speculation(c.Mode.Speculation)),
			},
			URL: cmp.Or(e.URL, c.Target.URL),
		}
		if e.URL != "" {
			a.Field = field + "url"
		}
		if a.URL == "" {
			return api.Require(field+"url", allowedTarget+"; or set target.url, which arms without a url share")
		}
		if a.Headers, err = l.openHeaders(field+"headers", e.Headers); err != nil {
			return err
		}
		if err := l.openRoute(field, &e); err != nil {
			return err
		}
		c.Mode.Served, c.Mode.arms = append(c.Mode.Served, a), append(c.Mode.arms, e)
	}
	if err := c.startArm(); err != nil {
		return err
	}
	if err := l.openRequests(c); err != nil {
		return err
	}
	return c.checkSwitch()
}

// openRoute checks the fields that an arm shares with the target by the rules of the target, and those of its pages. It
// reads the key. field is the path of the arm.
func (l *loader) openRoute(field string, a *Arm) error {
	check := func(setting, name string, value any) error {
		f := l.byName[setting]
		to := reflect.ValueOf(value).Elem()
		text := format(to)
		to.SetZero()
		err := f.set(to, text)
		if bad := new(api.FieldError); errors.As(err, &bad) {
			return api.Refuse(field+name, bad.Value, bad.Allowed)
		}
		return err
	}
	for _, f := range []struct {
		name  string
		value *string
	}{
		{"model", &a.Model},
		{"api_key_file", &a.APIKeyFile},
		{"router", &a.Router},
		{"worker_header", &a.WorkerHeader},
		{"session", &a.Session},
		{"request_id", &a.RequestID},
	} {
		if *f.value == "" {
			continue
		}
		if err := check("target."+f.name, f.name, f.value); err != nil {
			return err
		}
	}
	if len(a.MetricsURLs) > 0 {
		if err := check("cluster.metrics_urls", "metrics_urls", &a.MetricsURLs); err != nil {
			return err
		}
	}
	key := secret{field + "api_key", 1, 4096, &a.APIKey, a.APIKeyFile}
	read, err := l.readSecret(key)
	a.APIKey = Secret(read.value)
	return cmp.Or(err, key.check())
}

// openRequests reads the headers of the requests in switch.http and cold.http.
func (l *loader) openRequests(c *Config) (err error) {
	if r, ok := c.Switch.Request(); ok {
		if c.Switch.Opened, err = l.openHeaders("switch.http.headers", r.Headers); err != nil {
			return err
		}
	}
	for i, r := range c.Cold.Requests() {
		opened, err := l.openHeaders(fmt.Sprintf("cold.http[%d].headers", i), r.Headers)
		if err != nil {
			return err
		}
		c.Cold.Opened = append(c.Cold.Opened, opened)
	}
	return nil
}

// openHeaders returns the values of headers by their names, as [loader.readHeaders] does.
func (l *loader) openHeaders(field string, headers map[string]string) (map[string]string, error) {
	var entries []string
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		entries = append(entries, name+"="+headers[name])
	}
	return l.readHeaders(field, entries)
}

// checkNoArms refuses what only arms have. The driver endpoints checks an address without arms, too.
func (l *loader) checkNoArms(c *Config) error {
	if c.Mode.Driver == "command" || c.Mode.Driver == "http" {
		return api.Require("arms", forms["arms"].allowed+"; mode.driver "+c.Mode.Driver+" switches them")
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
	if words := c.Switch.Program(); len(words) > 0 {
		if _, err := exec.LookPath(words[0]); err != nil {
			reason := err
			if inner := new(exec.Error); errors.As(err, &inner) {
				reason = inner.Err
			}
			return api.Refuse("switch.command", words[0], fmt.Sprintf("a program that can be run (%v)", reason))
		}
	}
	for _, r := range c.Cold.Requests() {
		if r.Uses("{worker}") && len(c.Workers()) == 0 {
			return api.Refuse("cold.http", r.URL,
				"a URL without {worker}; or set cluster.metrics_urls, whose hosts are the workers")
		}
	}
	return nil
}

// Program is the program of Command with its arguments; nil where there is none.
func (s Switch) Program() (words []string) {
	if s.Command != "" {
		_ = json.Unmarshal([]byte(s.Command), &words) // as readCommand made it
	}
	return words
}

// Request returns the request that HTTP describes. ok is false if HTTP is empty.
func (s Switch) Request() (r cluster.Request, ok bool) {
	if s.HTTP != "" {
		_ = json.Unmarshal([]byte(s.HTTP), &r) // as readRequest made it
	}
	if s.Opened != nil {
		r.Headers = s.Opened
	}
	return r, s.HTTP != ""
}

// Requests returns the requests that HTTP describes.
func (c Cold) Requests() (all []cluster.Request) {
	if c.HTTP != "" {
		_ = json.Unmarshal([]byte(c.HTTP), &all) // as readRequests made it
	}
	for i, headers := range c.Opened {
		all[i].Headers = headers
	}
	return all
}

// forbiddenHeaders are those that an arm cannot set: its url has the host, and the load generator writes the others.
// Those of a request in switch.http and cold.http are fewer.
var (
	forbiddenHeaders   = append([]string{"Host"}, ownHeaders...)
	forbiddenInRequest = append([]string{"Host"}, wireHeaders...)
)

// onceEach says what is allowed in place of a header that is set twice.
const onceEach = "each header once, in upper or lower case"

// checkHeaders returns headers by their canonical names. The error is an [api.FieldError] of field for a name that is
// forbidden, invalid or set twice, and for an empty value.
func checkHeaders(field string, headers map[string]string, forbidden []string) (map[string]string, error) {
	checked := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		key, value := http.CanonicalHeaderKey(name), strings.TrimSpace(headers[name])
		if !headerName.MatchString(name) || value == "" || slices.Contains(forbidden, key) {
			return nil, api.Refuse(field, name, "the name of an HTTP header other than "+strings.Join(forbidden, ", ")+
				", and a value")
		}
		if _, twice := checked[key]; twice {
			return nil, api.Refuse(field, name, onceEach)
		}
		checked[key] = value
	}
	return checked, nil
}

// readArms checks a list of arms, which is YAML or JSON in brackets, or NAME=URL,NAME=URL, and returns it as JSON with
// the URLs in their usual form. "=URL" may be missing: such an arm has the URL of target.url. Files and variables that
// headers refer to are not read. The error is an [api.FieldError], whose field is relative to the list, such as
// "[0].name".
func readArms(s string) (string, error) {
	var arms []Arm
	if s = strings.TrimSpace(s); strings.HasPrefix(s, "{") {
		return "", errForm
	} else if !strings.HasPrefix(s, "[") {
		for entry := range strings.SplitSeq(s, ",") {
			name, address, _ := strings.Cut(entry, "=")
			arms = append(arms, Arm{Name: strings.TrimSpace(name), URL: strings.TrimSpace(address)})
		}
	} else {
		var entries []any
		if err := decodeStrictly([]byte(s), &entries); err != nil {
			return "", err
		}
		arms = make([]Arm, len(entries))
		for i, e := range entries {
			if err := decodeTexts(fmt.Sprintf("[%d]", i), e, armFields, &arms[i]); err != nil {
				return "", err
			}
		}
	}
	if len(arms) == 0 {
		return "", api.Refuse("", "an empty list", "at least one arm")
	}
	for i := range arms {
		if err := arms[i].check(fmt.Sprintf("[%d].", i), arms[:i]); err != nil {
			return "", err
		}
	}
	return canonical(arms)
}

// check returns an [api.FieldError] for the first invalid field of an arm, and writes its URL in the usual form. at is
// the path that precedes the field's name in the error. earlier has the arms before this one, whose names it cannot
// have.
func (a *Arm) check(at string, earlier []Arm) error {
	switch {
	case a.Name == "":
		return api.Require(at+"name", api.AllowedArm)
	case !api.IsArmName(a.Name):
		return api.Refuse(at+"name", a.Name, api.AllowedArm)
	case slices.ContainsFunc(earlier, func(e Arm) bool { return e.Name == a.Name }):
		return api.Refuse(at+"name", a.Name, "a name that no other arm has")
	case a.Mode != "" && !slices.Contains(api.Modes, a.Mode):
		return api.OneOf(at+"mode", a.Mode, api.Modes)
	case a.Speculation != "" && !slices.Contains(api.Speculations, a.Speculation):
		return api.OneOf(at+"speculation", a.Speculation, api.Speculations)
	}
	if a.URL != "" {
		address, err := readTarget(a.URL)
		if err != nil {
			return api.Refuse(at+"url", shownURL(a.URL), allowedURL(allowedTarget, err))
		}
		a.URL = address
	}
	headers, err := checkHeaders(at+"headers", a.Headers, forbiddenHeaders)
	a.Headers = headers
	return err
}

// readCommand reads a list of words, or words between spaces.
func readCommand(s string) (string, error) {
	words := strings.Fields(s)
	if strings.HasPrefix(strings.TrimSpace(s), "[") {
		words = nil
		if err := decodeStrictly([]byte(s), &words); err != nil {
			return "", err
		}
	}
	if len(words) == 0 || words[0] == "" || strings.HasPrefix(words[0], "{") {
		return "", errForm
	}
	for i, word := range words {
		at := fmt.Sprintf("[%d]", i)
		if strings.Contains(word, "\x00") {
			return "", api.Refuse(at, strconv.Quote(word), `a word without the character \x00`)
		}
		if err := checkPlaceholders(at, word, armPlaceholders); err != nil {
			return "", err
		}
	}
	return canonical(words)
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

// readRequest reads one request.
func readRequest(s string) (string, error) {
	var entry any = s
	if strings.HasPrefix(strings.TrimSpace(s), "[") {
		return "", errForm
	}
	if strings.HasPrefix(strings.TrimSpace(s), "{") {
		if err := decodeStrictly([]byte(s), &entry); err != nil {
			return "", err
		}
	}
	r, err := request("", entry, armPlaceholders)
	if err != nil {
		return "", err
	}
	return canonical(r)
}

// readRequests reads a list of requests, or one.
func readRequests(s string) (string, error) {
	entries := []any{s}
	if trimmed := strings.TrimSpace(s); strings.HasPrefix(trimmed, "{") {
		s = "[" + trimmed + "]"
	}
	if strings.HasPrefix(strings.TrimSpace(s), "[") {
		if err := decodeStrictly([]byte(s), &entries); err != nil {
			return "", err
		}
	}
	if len(entries) == 0 {
		return "", api.Refuse("", "an empty list", "at least one request")
	}
	var all []cluster.Request
	for i, e := range entries {
		r, err := request(fmt.Sprintf("[%d]", i), e, coldPlaceholders)
		if err != nil {
			return "", err
		}
		all = append(all, r)
	}
	return canonical(all)
}

// request reads METHOD URL or an object. at is what its place adds to the field's name. filled are the placeholders
// that it may contain.
func request(at string, entry any, filled []string) (r cluster.Request, err error) {
	text, plain := entry.(string)
	method, address, found := strings.Cut(strings.TrimSpace(text), " ")
	switch {
	case !plain:
		if err := decodeTexts(at, entry, requestFields, &r); err != nil {
			return r, err
		}
	case found:
		r = cluster.Request{Method: method, URL: strings.TrimSpace(address)}
	default:
		r.URL = method
	}
	if r.Method != "" && !headerName.MatchString(r.Method) {
		return r, api.Refuse(at+".method", r.Method, "a method of HTTP, such as POST")
	}
	if err := checkTemplate(at+".url", r.URL, filled); err != nil {
		return r, err
	}
	if err := checkPlaceholders(at+".body", r.Body, filled); err != nil {
		return r, err
	}
	if r.Headers, err = checkHeaders(at+".headers", r.Headers, forbiddenInRequest); err != nil {
		return r, err
	}
	for _, name := range slices.Sorted(maps.Keys(r.Headers)) {
		if err := checkPlaceholders(at+".headers", r.Headers[name], filled); err != nil {
			return r, err
		}
	}
	return r, nil
}

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

// decodeStrictly decodes YAML, of which JSON is a part, into what has JSON's names. For a key that stands twice in an
// object, the error is an [api.FieldError].
func decodeStrictly(data []byte, to any) error {
	var node yaml.Node
	if err := yaml.Unmarshal(data, &node); err != nil {
		return err
	}
	if path, key := repeatedKey("", &node); key != nil {
		return api.Refuse(path, secondValue, oneValue)
	}
	var plain any
	if err := node.Decode(&plain); err != nil {
		return err
	}
	text, err := json.Marshal(plain)
	if err != nil {
		return err
	}
	strict := json.NewDecoder(bytes.NewReader(text))
	strict.DisallowUnknownFields()
	return strict.Decode(to)
}

const (
	secondValue = "a second value"
	oneValue    = "one value"
)

// repeatedKey returns the first key that an object in a node has twice, with its path below at, such as [0].url. The
// key is nil if there is none.
func repeatedKey(at string, node *yaml.Node) (path string, key *yaml.Node) {
	var keys []string
	for i, child := range node.Content {
		below := at
		switch {
		case node.Kind == yaml.SequenceNode:
			below = fmt.Sprintf("%s[%d]", at, i)
		case node.Kind == yaml.MappingNode && i%2 == 0:
			if slices.Contains(keys, child.Value) {
				return at + "." + child.Value, child
			}
			keys = append(keys, child.Value)
		case node.Kind == yaml.MappingNode:
			below = at + "." + node.Content[i-1].Value
		}
		if path, key := repeatedKey(below, child); key != nil {
			return path, key
		}
	}
	return "", nil
}

// The fields of an arm and of a request are texts but for headers, an object of texts, and metrics_urls, a list of
// texts.
var (
	armFields = []string{
		"name", "url", "headers", "mode", "speculation", "model", "api_key_file", "router", "worker_header", "session",
		"request_id", "metrics_urls",
	}
	requestFields = []string{"method", "url", "headers", "body"}
)

// decodeTexts decodes an object with some of the fields. at is its place. The error is an [api.FieldError].
func decodeTexts(at string, plain any, fields []string, to any) error {
	const text = "a text in quotes"
	object, ok := plain.(map[string]any)
	if !ok {
		return api.Refuse(at, jsonOf(plain), "an object with the fields "+enumerate(fields))
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if !slices.Contains(fields, name) {
			return api.Refuse(at, fmt.Sprintf("unknown field %q", name), "one of the fields "+enumerate(fields))
		}
		switch value := object[name].(type) {
		case nil:
		case []any:
			if name != "metrics_urls" {
				return api.Refuse(at+"."+name, jsonOf(value), text)
			}
			for i, entry := range value {
				if _, ok := entry.(string); !ok {
					return api.Refuse(fmt.Sprintf("%s.%s[%d]", at, name, i), jsonOf(entry), text)
				}
			}
		case string:
			switch name {
			case "headers":
				return api.Refuse(at+".headers", "a text", "an object with a text for each name")
			case "metrics_urls":
				return api.Refuse(at+"."+name, jsonOf(value), "a list of texts in quotes")
			}
		case map[string]any:
			if name != "headers" {
				return api.Refuse(at+"."+name, jsonOf(value), text)
			}
			for _, header := range slices.Sorted(maps.Keys(value)) {
				if _, ok := value[header].(string); !ok {
					return api.Refuse(at+".headers", header+" (value hidden)", text+" as the value")
				}
			}
		default:
			return api.Refuse(at+"."+name, jsonOf(value), text)
		}
	}
	return json.Unmarshal([]byte(jsonOf(object)), to)
}

// jsonOf returns a decoded value as JSON.
func jsonOf(v any) string {
	text, _ := canonical(v)
	return text
}

// canonical writes a structured value as the field's text.
func canonical(v any) (string, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return strings.TrimSpace(b.String()), err
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
