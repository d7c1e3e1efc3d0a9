package config

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"go.yaml.in/yaml/v3"

	"kvbooth/sidecar/api"
)

// Load parses the command line (without the program's name), the environment (in the form of [os.Environ]) and the
// files that they name. Help is printed to stdout. The commands [Help] and [Version] have no configuration. The error
// wraps an [api.FieldError] wherever it concerns a field.
func Load(args, environ []string, stdout io.Writer) (*Config, Command, error) {
	return load(args, environ, stdout, readFile)
}

func load(args, environ []string, stdout io.Writer, read reader) (*Config, Command, error) {
	l := &loader{env: environment(environ), environ: environ, read: read}
	l.model = newModel(Config{}, stdout, kong.Exit(func(int) { l.helped = true }))
	l.hook = l.addSources
	if len(args) > 0 && args[0] == string(Help) {
		args, l.whole = append(l.takeTopic(args[1:]), "--help"), true
	}
	args, err := translate(args)
	if err != nil {
		return nil, "", err
	}
	ctx, err := l.kong.Parse(args)
	if l.helped {
		return nil, Help, nil
	}
	if err != nil {
		return nil, "", bare(err)
	}
	if ctx.Command() == string(Version) {
		return nil, Version, nil
	}
	l.forgetDefaults(ctx)
	c, err := l.finish(ctx)
	if err != nil {
		return nil, "", l.sourced(err)
	}
	return c, commandOf(ctx), nil
}

// translate replaces flags that other programs have: -H and --header "NAME: VALUE" by those of the settings. It refuses
// a key on the command line, which other users of the machine can see.
func translate(args []string) ([]string, error) {
	var all []string
	for i := 0; i < len(args); i++ {
		name, value, attached := strings.Cut(args[i], "=")
		switch name {
		case "--":
			return append(all, args[i:]...), nil
		case "--api-key", "--target-api-key":
			return nil, errors.New(name + " is not allowed on the command line, where other users can see it: set " +
				"LOADGEN_TARGET_API_KEY, or --target-api-key-file=FILE")
		case "-H", "--header":
			if !attached && i+1 < len(args) {
				i++
				value = args[i]
			}
			header, text, found := strings.Cut(value, ":")
			if !found {
				return nil, api.Refuse(name, "its value (hidden)", `"NAME: VALUE"; see also --target-headers`)
			}
			all = append(all, "--target-headers="+strings.TrimSpace(header)+"="+strings.TrimSpace(text))
		default:
			all = append(all, args[i])
		}
	}
	return all, nil
}

// takeTopic removes the topic after "help" from the arguments and keeps it.
func (l *loader) takeTopic(args []string) []string {
	if len(args) == 1 && (args[0] == every || args[0] == usual || slices.ContainsFunc(l.fields,
		func(f field) bool { return topicOf(f.flag) == args[0] })) {
		l.topic = args[0]
		return nil
	}
	return slices.Clone(args)
}

// bare removes kong's prefix from a value's error, and adds to kong's own errors, which concern no field, where to find
// the fields.
func bare(err error) error {
	if bad := new(badValue); errors.As(err, &bad) {
		return bad
	}
	if bad := new(worded); errors.As(err, &bad) {
		return bad
	}
	if bad := new(api.FieldError); errors.As(err, &bad) {
		return bad
	}
	help := "loadgen --help"
	if bad := new(kong.ParseError); errors.As(err, &bad) {
		if node := bad.Context.Selected(); node != nil && Command(node.Name).own() {
			help = "loadgen help " + node.Name
		}
		return fmt.Errorf("%w%s (see %s)", err, meant(err.Error(), bad.Context), help)
	}
	return fmt.Errorf("%w (see %s)", err, help)
}

// meant suggests a command in place of an unknown one, and the flag of the target's address.
func meant(text string, ctx *kong.Context) string {
	arg, ok := strings.CutPrefix(text, "unexpected argument ")
	switch {
	case text == "unknown flag --url", text == "unknown flag --base-url", ok && strings.Contains(arg, "://"):
		return `, did you mean "--target-url"?`
	case !ok:
		return ""
	}
	for _, command := range ctx.Model.Children {
		if !command.Hidden && edits(arg, command.Name) <= 2 {
			return fmt.Sprintf(", did you mean %q?", command.Name)
		}
	}
	return ""
}

// loader is one call of Load.
type loader struct {
	*model
	env     map[string]string
	environ []string // all of it
	read    reader
	helped  bool
}

// reader reads the file of a field. what describes its expected content. The error is an [api.FieldError].
type reader func(field, path, what string) ([]byte, error)

// addSources applies the variables and the file to fields that the command line does not set.
func (l *loader) addSources(ctx *kong.Context) error {
	if ctx.Command() == string(Version) {
		return nil
	}
	if err := l.checkVariables(); err != nil {
		return err
	}
	config := l.byName["config"]
	path, _ := ctx.FlagValue(config.flag).(string)
	if path == "" {
		path = l.env[config.env()]
	}
	if path != "" {
		data, err := l.read("config", path, "a readable YAML file")
		if err != nil {
			return err
		}
		values, err := l.parseFile(path, data)
		if err != nil {
			return err
		}
		ctx.AddResolver(l.resolver(func(f field) (given, bool) { g, ok := values[f.name]; return g, ok }))
	}
	ctx.AddResolver(l.resolver(func(f field) (given, bool) {
		for _, name := range f.names() {
			if v := l.env[variable(name)]; v != "" {
				return given{value: v, from: variable(name)}, true
			}
		}
		if v := l.env[openAIURL]; v != "" && f.name == "target.url" {
			return given{value: v, from: openAIURL}, true
		}
		return given{}, false
	}))
	return nil
}

func (l *loader) resolver(look func(field) (given, bool)) kong.ResolverFunc {
	return func(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
		if f, ok := l.byFlag[flag.Value]; ok {
			if g, ok := look(f); ok {
				return g, nil
			}
		}
		return nil, nil
	}
}

// finish adds the values without a flag, and checks the whole configuration.
func (l *loader) finish(ctx *kong.Context) (*Config, error) {
	if err := l.applyPreset(ctx); err != nil {
		return nil, err
	}
	c := l.Config
	if err := l.readSecrets(&c); err != nil {
		return nil, err
	}
	if c.DataDir == "" {
		c.DataDir = dataDir(l.env)
	}
	if l.isPlainServer(ctx) {
		c.Arms = Arms{{Name: plainServer}}
	}
	if err := l.takeArms(&c); err != nil {
		return nil, err
	}
	c.Mode.Mode = c.Mode.atStart(c.Target.URL)
	if c.Target.URL == "" && c.Mode.Driver == "endpoints" {
		c.Target.URL = c.Mode.Address()
	}
	if err := l.readVariants(&c.Mode.Kubernetes); err != nil {
		return nil, err
	}
	c.fillDuration()
	c.fillTwin()
	c.fillGraphs()
	if err := l.readCAs(&c); err != nil {
		return nil, err
	}
	for _, section := range []struct {
		name   string
		access *Access
	}{
		{"target.", &c.Target.Access},
		{"twin.target.", &c.Twin.Target.Access},
		{"followup.", &c.Followup.Access},
		{"cluster.", &c.Cluster.Access},
	} {
		if err := l.openAccess(section.name, section.access); err != nil {
			return nil, err
		}
	}
	if _, _, err := l.readPair("tls_cert_file", c.TLSCertFile, "tls_key_file", c.TLSKeyFile); err != nil {
		return nil, err
	}
	explicit := explicitly(ctx)
	c.ByHand = c.Mode.Driver == "manual" && !explicit[l.byName["mode.driver"].flag.Value]
	c.LevelGiven = explicit[l.byName["concurrency"].flag.Value] || explicit[l.byName["rate"].flag.Value]
	c.NameGiven = explicit[l.byName["name"].flag.Value]
	c.Replay = l.grammar.Replay.File
	c.CheckCluster, c.CheckTarget = l.grammar.Check.Cluster, l.grammar.Check.Target
	l.takeCommand(ctx, &c)
	if err := cmp.Or(l.takeChurn(&c), l.checkTraffic(commandOf(ctx), explicit, &c)); err != nil {
		return nil, err
	}
	c.Sweep = l.sweep(ctx, &c)
	if err := c.Check(); err != nil {
		return nil, err
	}
	return &c, nil
}

// forgetDefaults removes the flags as sources of values that no source sets.
func (l *loader) forgetDefaults(ctx *kong.Context) {
	explicit := explicitly(ctx)
	for _, f := range l.fields {
		if !explicit[f.flag.Value] {
			delete(l.from, f.name)
		}
	}
}

// fitMaxConcurrency fits the slider's defaults to a lower max_concurrency, and for commands with levels of their own
// that of concurrency. A run at a default above max_concurrency is refused.
func (l *loader) fitMaxConcurrency(command Command, explicit map[*kong.Value]bool, c *Config) error {
	given := func(name string) bool { return explicit[l.byName[name].flag.Value] }
	if s := &c.Slider; s.Max > c.MaxConcurrency && !given("slider.max") {
		s.Max = c.MaxConcurrency
		if s.Min >= s.Max && !given("slider.min") {
			s.Min = 1
		}
		if !given("slider.increment") {
			s.Increment = max(1, min(s.Increment, s.Max-s.Min))
		}
	}
	switch {
	case c.Concurrency <= c.MaxConcurrency || given("concurrency"):
	case command == Levels || command == Capacity:
		c.Concurrency = c.MaxConcurrency
	case !given("rate"):
		return api.Refuse("max_concurrency", c.MaxConcurrency, fmt.Sprintf("at least concurrency (%d), or set "+
			"concurrency, too", c.Concurrency))
	}
	return nil
}

// checkTraffic refuses settings that the level or the traffic ignores, unless a stronger source sets those.
func (l *loader) checkTraffic(command Command, explicit map[*kong.Value]bool, c *Config) error {
	given := func(name string) int { // a value that is the default anyway is no contradiction
		f := l.byName[name]
		if explicit[f.flag.Value] && !f.flag.Target.IsZero() && format(f.flag.Target) != f.flag.Default {
			return strength(l.from[name])
		}
		return 0
	}
	if err := l.fitMaxConcurrency(command, explicit, c); err != nil || !c.sends() {
		return err
	}
	number, rate := given("concurrency"), given("rate")
	if err := l.checkLevel(command, c, number, rate); err != nil {
		return err
	}
	if number > rate {
		c.Rate = api.Rates{}
	}
	kind, by := api.TrafficKind{
		Trace: len(c.Traffic.Files) > 0, Shape: c.TrafficShape, Arrivals: c.Arrivals,
	}, given("shape.preset")
	if kind.Trace {
		by = max(by, given("trace"))
	}
	kind.Number = c.Duration+time.Duration(c.Requests) > 0 && len(c.Rate.Levels) == 0 && (number > 0 || !kind.Trace)
	for _, f := range l.fields {
		if from := given(f.name); from == 0 || from < by && !strings.HasPrefix(f.name, "shape.") {
			continue
		}
		if err := kind.CheckSetting(f.name, f.shown(format(f.flag.Target))); err != nil {
			return err
		}
	}
	return nil
}

// checkLevel refuses a number of conversations beside a rate of the same strength, and both beside the levels of a
// command. number and rate are the strengths of their sources, 0 for none.
func (l *loader) checkLevel(command Command, c *Config, number, rate int) error {
	switch {
	case max(number, rate) == ofFlags && (command == Levels || command == Capacity):
		name := "rate"
		if number == ofFlags {
			name = "concurrency"
		}
		return api.Refuse(name, format(l.byName[name].flag.Target),
			fmt.Sprintf("leave it out with loadgen %s, which takes --levels", command))
	case number > 0 && number == rate:
		return api.Refuse("rate", c.Rate, fmt.Sprintf("one of rate and concurrency, which is %d (from %s)", c.Concurrency,
			l.from["concurrency"]))
	}
	return nil
}

// ofFlags is the precedence of flags.
const ofFlags = 3

// strength returns the precedence of a source, above 0.
func strength(from string) int {
	switch {
	case strings.HasPrefix(from, "--"):
		return ofFlags
	case strings.HasPrefix(from, envPrefix):
		return 2
	}
	return 1
}

// takeCommand adds what the command has of its own.
func (l *loader) takeCommand(ctx *kong.Context, c *Config) {
	switch commandOf(ctx) {
	case Compared:
		c.Compare = &l.grammar.Compare
	case Shadowed:
		c.Shadow = &l.grammar.Shadow
	case Traced:
		c.Trace = &l.grammar.Trace
	case Recorded:
		c.Record = &l.grammar.Record
	case Probed:
		c.Probe = &l.grammar.Probe
	case Churned:
		c.Churn = &l.grammar.Churn
	case Asked:
		c.Why = &l.grammar.Why
	case Listed:
		c.History = &l.grammar.History
	case Joined:
		c.Member = true
	}
}

// fillDuration ends a run of steps after the last one, unless duration is set.
func (c *Config) fillDuration() {
	if c.Duration == 0 {
		c.Duration = time.Duration(len(c.Rate.Steps())) * c.Rate.Each
	}
}

// applyPreset sets the preset's fields, except those that a source sets, and those that contradict one: a minimum of
// turns above the maximum, answers longer than allowed, a limit of requests beside a rate.
func (l *loader) applyPreset(ctx *kong.Context) error {
	if l.Preset == "" {
		return nil
	}
	explicit := explicitly(ctx)
	given := func(name string) bool { return explicit[l.byName[name].flag.Value] }
	values := maps.Clone(presets[l.Preset])
	if l.endless() {
		maps.Copy(values, answers)
	}
	if len(l.Rate.Levels) > 0 { // its arrivals are not to be held back
		delete(values, "target_rps")
	}
	for name, value := range values {
		f := l.byName[name]
		if given(name) {
			continue
		}
		if err := f.set(f.flag.Target, value); err != nil {
			return err
		}
	}
	if !given("turns.min") {
		l.Turns.Min = min(l.Turns.Min, l.Turns.Max)
	}
	if !given("output_tokens.mean") && l.OutputTokens.Mean > float64(l.MaxTokens) {
		l.OutputTokens = api.Distribution{}
	}
	return nil
}

// explicitly returns the values that a source sets.
func explicitly(ctx *kong.Context) map[*kong.Value]bool {
	explicit := map[*kong.Value]bool{}
	for _, p := range ctx.Path {
		if p.Flag != nil {
			explicit[p.Flag.Value] = true
		}
	}
	return explicit
}

// environment returns the relevant variables. An empty one counts as not set.
func environment(environ []string) map[string]string {
	env := map[string]string{}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if value != "" && (strings.HasPrefix(name, envPrefix) || slices.Contains(userFolders, name) ||
			slices.Contains(openAI, name)) {
			env[name] = value
		}
	}
	return env
}

var (
	userFolders = []string{"HOME", "XDG_DATA_HOME", "LOCALAPPDATA"}
	openAI      = []string{openAIURL, openAIKey}
)

// The variables of OpenAI's own clients. They apply where no other source has the target's URL, and the key only with
// the URL beside it, since it is not to be sent to another server.
const (
	openAIURL = "OPENAI_BASE_URL"
	openAIKey = "OPENAI_API_KEY"
)

// serviceLink is a variable that Kubernetes sets in every pod of a namespace
// with a service called loadgen.
var serviceLink = regexp.MustCompile(`^LOADGEN_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$`)

// checkVariables refuses variables without a field. Their values may be secrets and are not shown.
func (l *loader) checkVariables() error {
	known := make([]string, 0, len(l.fields))
	for _, f := range l.fields {
		for _, name := range f.names() {
			known = append(known, variable(name))
		}
	}
	for _, s := range l.secrets() {
		known = append(known, variable(s.name))
	}
	for _, name := range slices.Sorted(maps.Keys(l.env)) {
		if strings.HasPrefix(name, envPrefix) && !slices.Contains(known, name) && !serviceLink.MatchString(name) {
			return reword(name, "set", "a known variable", "unknown variable"+suggest(name, known))
		}
	}
	return nil
}

// readCAs reads the authorities of services that get no headers.
func (l *loader) readCAs(c *Config) (err error) {
	c.Members.NATS.CA, err = l.readCA("members.nats.ca_file", c.Members.NATS.CAFile)
	if err == nil {
		c.Corpus.S3.CA, err = l.readCA("corpus.s3.ca_file", c.Corpus.S3.CAFile)
	}
	return err
}

// readCA reads the authorities in a file, nil without one, so that a file without any is detected at the start.
func (l *loader) readCA(field, path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	data, err := l.read(field, path, "a readable PEM file")
	if err == nil && !x509.NewCertPool().AppendCertsFromPEM(data) {
		err = reword(field, path, "a PEM file with certificates", path+" contains no PEM certificates")
	}
	return data, err
}

// readVariants reads the workers' settings for each speculation.
func (l *loader) readVariants(k *Kubernetes) error {
	if k.VariantsFile == "" {
		return nil
	}
	const field = "mode.kubernetes.variants_file"
	data, err := l.read(field, k.VariantsFile, "a readable YAML file")
	if err != nil {
		return err
	}
	if err := decodeStrictly(data, &k.Variants); err != nil {
		return api.Refuse(field, k.VariantsFile, "a map from speculation to image, args and env; "+err.Error())
	}
	names := ""
	for i, s := range slices.Sorted(maps.Keys(k.Variants)) {
		if !slices.Contains(api.Speculations, s) {
			return api.Refuse(field, string(s), fmt.Sprintf("one of these speculations as the key: %v", api.Speculations))
		}
		now := k.Variants[s].Names()
		if i > 0 && now != names || now == "" {
			return api.Refuse(field, fmt.Sprintf("%s with %s", s, cmp.Or(now, "nothing")),
				"set the same of image, args and variables in every variant, otherwise switching back is impossible")
		}
		names = now
	}
	return nil
}

// openAccess reads the authorities, the headers and the client certificate of a section, whose name ends in a dot.
func (l *loader) openAccess(section string, a *Access) (err error) {
	if a.Opened.CA, err = l.readCA(section+"ca_file", a.CAFile); err != nil {
		return err
	}
	if a.Opened.Headers, err = l.readHeaders(section+"headers", a.Headers); err != nil {
		return err
	}
	a.Opened.Cert, a.Opened.Key, err = l.readPair(section+"cert_file", a.CertFile, section+"key_file", a.KeyFile)
	return err
}

// onceEach says what is allowed in place of a header that is set twice.
const onceEach = "each header once, in upper or lower case"

// readHeaders returns the values of headers, which may be in files and variables.
func (l *loader) readHeaders(field string, entries []string) (map[string]string, error) {
	if len(entries) == 0 {
		return nil, nil
	}
	headers := map[string]string{}
	for _, entry := range entries {
		name, value, _ := strings.Cut(entry, "=")
		key := http.CanonicalHeaderKey(name)
		if _, twice := headers[key]; twice {
			return nil, api.Refuse(field, name, onceEach)
		}
		if path, ok := strings.CutPrefix(value, "file:"); ok {
			data, err := l.read(field, path, "a readable file with the value of "+name+" on one line")
			if err != nil {
				return nil, err
			}
			value = strings.TrimRight(string(data), "\r\n")
		} else if variable, ok := strings.CutPrefix(value, "env:"); ok {
			i := slices.IndexFunc(l.environ, func(e string) bool { return strings.HasPrefix(e, variable+"=") })
			if i < 0 {
				return nil, api.Refuse(field, name+"=env:"+variable, "a variable that is set")
			}
			value = strings.TrimPrefix(l.environ[i], variable+"=")
		}
		if value == "" || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r >= 0x7f }) {
			return nil, api.Refuse(field, name+" (value hidden)", "one line of visible ASCII characters and spaces as the value")
		}
		headers[key] = value
	}
	return headers, nil
}

// isSet reports whether any field is set.
func (a Access) isSet() bool { return len(a.Headers) > 0 || a.CAFile+a.CertFile+a.KeyFile != "" }

// readPair reads a certificate and its private key, nil where neither is set, so that a pair that does not match is
// detected at the start.
func (l *loader) readPair(certField, certPath, keyField, keyPath string) (cert, key []byte, err error) {
	switch {
	case certPath == "" && keyPath == "":
		return nil, nil, nil
	case certPath == "":
		return nil, nil, api.Require(certField, "a PEM file, since "+keyField+" is set (set both or neither)")
	case keyPath == "":
		return nil, nil, api.Require(keyField, "a PEM file, since "+certField+" is set (set both or neither)")
	}
	if cert, err = l.read(certField, certPath, "a readable PEM file"); err != nil {
		return nil, nil, err
	}
	if key, err = l.read(keyField, keyPath, "a readable PEM file"); err != nil {
		return nil, nil, err
	}
	if _, err := tls.X509KeyPair(cert, key); err != nil {
		return nil, nil, api.Refuse(certField, certPath,
			"a PEM certificate that matches the private key in "+keyField+" ("+strings.TrimPrefix(err.Error(), "tls: ")+")")
	}
	return cert, key, nil
}

// dataDir returns the directory kvbooth in the system's folder for user data. It is empty if the
// environment does not define that folder.
func dataDir(env map[string]string) string {
	base := env["XDG_DATA_HOME"]
	home := env["HOME"]
	switch {
	case runtime.GOOS == "windows":
		base = env["LOCALAPPDATA"]
	case runtime.GOOS == "darwin" && home != "":
		base = filepath.Join(home, "Library", "Application Support")
	case !filepath.IsAbs(base) && home != "":
		base = filepath.Join(home, ".local", "share")
	}
	if !filepath.IsAbs(base) {
		return ""
	}
	return filepath.Join(base, "kvbooth")
}

// decodeStrictly decodes YAML into what has JSON's names.
func decodeStrictly(data []byte, to any) error {
	var plain any
	if err := yaml.Unmarshal(data, &plain); err != nil {
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
