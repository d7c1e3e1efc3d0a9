package config

import (
	"cmp"
	"encoding"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/report"
)

const envPrefix = "LOADGEN_"

// field is one field of [Config].
type field struct {
	name string // dotted, as in the file
	flag *kong.Flag
}

func (f field) env() string { return variable(f.name) }

// names returns the name of the field and the one that it had before, which is read, too.
func (f field) names() []string {
	if earlier := f.flag.Tag.Get("earlier"); earlier != "" {
		return []string{f.name, earlier}
	}
	return []string{f.name}
}

// variable names the environment variable of a field.
func variable(name string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(name, ".", "_"))
}

// grammar is the struct into which kong parses the command line.
type grammar struct {
	Config `embed:""`

	Run   struct{} `cmd:"" default:"withargs" help:"Generate load (the default)."`
	Check struct {
		Cluster bool `help:"Also check the cluster, with the driver kubernetes: the object and its mode, permissions, and GPUs for a rollout. Changes nothing."`
		Target  bool `help:"Also ask the server for an answer of 16 tokens, and print what it reports: model, streaming, usage, cached tokens, context length, router."`
	} `cmd:"" help:"Check the configuration without starting anything."`
	Health  struct{} `cmd:"" help:"Check whether the load generator running with this configuration is ready."`
	Version struct{} `cmd:"" help:"Print the version."`

	Member struct{} `cmd:"" help:"Run as a member of another load generator: connect to the NATS server given by --join and take work from the coordinator there. API keys for the target are set here."`

	Trial    trialFlags    `cmd:"" help:"Test which of two routers or more is better at a given load."`
	Sweep    levelsFlags   `cmd:"" help:"Measure a server, or routers, at several loads."`
	Capacity capacityFlags `cmd:"" help:"Find the load that a server, or each router, sustains within the SLOs."`
	Churn    Churn         `cmd:"" help:"Find what failing workers and restarts cost the users of each router, and how long."`
	Compare  Compare       `cmd:"" help:"Compare two existing results; measures nothing."`
	Probe    Probe         `cmd:"" name:"probe-router" help:"Find out in seconds what the router in front of the engines does: whether prompts that begin alike meet again, whether sessions stay, what it adds."`
	Why      Why           `cmd:"" help:"Say why the KV cache hit rate of a running load generator is what it is: what became of the prompt tokens that could have been cached."`
	History  History       `cmd:"" help:"List past runs and where their figures changed, or accept one to compare later ones with."`
	Record   Record        `cmd:"" help:"Record what a running load generator shows, into a file for loadgen replay."`
	Replay   replayFlags   `cmd:"" help:"Serve a recording on all pages, over and over, in place of a run; needs no target."`
	Trace    Trace         `cmd:"" help:"Print what a recorded trace or a dataset holds: rate, lengths, hit rate, and what a replay of it would have to make up; sends nothing."`
	Shadow   Shadow        `cmd:"" help:"Calculate what other routers would have found in the caches, from a trace."`

	hook func(*kong.Context) error
}

// BeforeResolve is called by kong after the command line has been parsed.
func (g *grammar) BeforeResolve(ctx *kong.Context) error {
	if g.hook == nil {
		return nil
	}
	return g.hook(ctx)
}

// model is kong's parser together with the fields of its own [Config].
type model struct {
	grammar
	kong   *kong.Kong
	fields []field
	byName map[string]field
	byFlag map[*kong.Value]field
	own    map[Command]map[string]field // the flags of single commands
	from   map[string]string            // the source of each value that is set, by the field's name
	whole  bool                         // help was requested by "help", not by --help
	topic  string                       // the requested topic of help; "": the most common settings
}

// newModel makes a model that fills c, and prints help to stdout.
func newModel(c Config, stdout io.Writer, options ...kong.Option) *model {
	m := &model{
		byName: map[string]field{}, byFlag: map[*kong.Value]field{}, own: map[Command]map[string]field{},
		from: map[string]string{},
	}
	m.Config = c
	k, err := kong.New(&m.grammar, append(options,
		kong.Name("loadgen"), kong.Description(description),
		kong.Writers(stdout, io.Discard),
		kong.Help(m.printHelp), kong.ExplicitGroups(topics), kong.ValueFormatter(helpOf),
		kong.ConfigureHelp(kong.HelpOptions{WrapUpperBound: 110, Compact: true}),
		kong.PostBuild(m.collect),
	)...)
	if err != nil {
		panic(err) // a tag of Config is invalid, which every test detects
	}
	m.kong = k
	return m
}

// collect assigns every flag its field. Kong names a flag by the prefixes of its sections, which end in dots, and its
// struct field.
func (m *model) collect(k *kong.Kong) error {
	for _, flag := range k.Model.Flags {
		if flag == k.Model.HelpFlag {
			flag.Help = "Show this help."
			continue
		}
		f := m.fieldOf(flag)
		m.fields = append(m.fields, f)
		m.byName[f.name] = f
	}
	m.collectOwn(k)
	return nil
}

// fieldOf returns the field of a flag, whose name, placeholder, help and default are completed. The model becomes its
// mapper, so that each value, whatever its source, is checked by the field's own rules.
func (m *model) fieldOf(flag *kong.Flag) field {
	f := field{name: strings.ReplaceAll(flag.Name, "-", "_"), flag: flag}
	flag.Name = flagName(flag.Name)
	flag.PlaceHolder = cmp.Or(flag.PlaceHolder, f.placeHolder())
	if alias := flag.Tag.Get("alias"); alias != "" {
		flag.Aliases = append(flag.Aliases, alias)
	}
	for _, earlier := range f.names()[1:] {
		flag.Aliases = append(flag.Aliases, flagName(earlier))
	}
	if s, ok := api.WorkloadSettingOf(f.name); ok {
		flag.Help = strings.TrimSpace(s.Help + " " + flag.Help)
		flag.Default, flag.HasDefault = s.Default, s.Default != ""
	}
	flag.Mapper = m
	m.byFlag[flag.Value] = f
	return f
}

func flagName(field string) string { return strings.NewReplacer(".", "-", "_", "-").Replace(field) }

// fieldsOf returns the fields of a struct by their names, such as those of an [Arm]. Their values are those of the
// struct.
func fieldsOf(of any) map[string]field {
	m := &model{byFlag: map[*kong.Value]field{}, byName: map[string]field{}}
	if _, err := kong.New(of, kong.NoDefaultHelp(), kong.PostBuild(func(k *kong.Kong) error {
		for _, flag := range k.Model.Flags {
			f := m.fieldOf(flag)
			m.byName[f.name] = f
		}
		return nil
	})); err != nil {
		panic(err) // a tag is invalid, which every test detects
	}
	return m.byName
}

// given is a value of a variable or of the file, with its source.
type given struct {
	value string
	items []string // of a list whose items may contain commas; nil: commas separate those of value
	from  string
}

// badValue is a field error together with the source of the value.
type badValue struct {
	err  error
	from string
}

func (e *badValue) Error() string { return fmt.Sprintf("%v (from %s)", e.err, e.from) }
func (e *badValue) Unwrap() error { return e.err }

// sourced adds the source of the value to a field's error, unless the error has it or none is known.
func (m *model) sourced(err error) error {
	bad := new(api.FieldError)
	if errors.As(err, new(*badValue)) || !errors.As(err, &bad) {
		return err
	}
	name, _, _ := strings.Cut(bad.Field, "[")
	for name != "" {
		// A switch of a command may have the name of a section, such as --target of check.
		if from, ok := m.from[name]; ok && (name == bad.Field || from != "--"+name || m.byName[name].flag != nil) {
			return &badValue{err, from}
		}
		name = name[:max(strings.LastIndex(name, "."), 0)] // switch.http.headers is part of switch.http
	}
	return err
}

// Decode implements [kong.Mapper].
func (m *model) Decode(ctx *kong.DecodeContext, target reflect.Value) error {
	f := m.byFlag[ctx.Value]
	if target.Kind() == reflect.Bool && ctx.Scan.Peek().Type != kong.FlagValueToken {
		target.SetBool(true)
		m.from[f.name] = "--" + f.flag.Name
		return nil
	}
	token := ctx.Scan.Pop()
	if token.IsEOL() || token.InferredType() == kong.FlagToken {
		return &badValue{api.Refuse(f.name, "an empty value", f.allowed()), "--" + f.flag.Name}
	}
	g, ok := token.Value.(given)
	if !ok {
		g = given{value: fmt.Sprint(token.Value), from: "--" + f.flag.Name}
	}
	if !ok && g.value == "" && (f.name == "data_dir" || m.byName[f.name].flag != f.flag) { // such as an unset "$DIR"
		return &badValue{api.Refuse(f.name, `""`, f.allowed()), g.from}
	}
	if err := f.give(target, g); err != nil {
		return &badValue{err, g.from}
	}
	m.from[f.name] = g.from
	if next := ctx.Scan.Peek(); ctx.Value.Flag == nil && target.Kind() == reflect.Slice && next.IsValue() {
		return m.Decode(ctx, target) // the last argument takes all remaining ones
	}
	return nil
}

// set parses a value, checks it by the field's rules and stores it in target. A list is extended.
func (f field) set(target reflect.Value, value string) error {
	return f.give(target, given{value: value})
}

func (f field) give(target reflect.Value, g given) error {
	err := f.parse(target, g)
	if inner := new(api.FieldError); errors.As(err, &inner) && f.structured() {
		return &api.FieldError{Field: f.name + inner.Field, Value: inner.Value, Allowed: inner.Allowed}
	}
	if err != nil {
		return api.Refuse(f.name, f.shown(g.value), f.allowedFor(g.value, err))
	}
	return nil
}

func (f field) parse(to reflect.Value, g given) (err error) {
	if own, ok := to.Addr().Interface().(encoding.TextUnmarshaler); ok {
		if g.value == "" && f.structured() {
			return nil // not set
		}
		return own.UnmarshalText([]byte(g.value))
	}
	switch to.Kind() {
	case reflect.Pointer: // nil: not set
		inner := reflect.New(to.Type().Elem())
		if g.value != "" {
			err = f.parse(inner.Elem(), g)
		} else {
			inner = reflect.Zero(to.Type())
		}
		if err == nil {
			to.Set(inner)
		}
	case reflect.Slice:
		return f.list(to, g)
	case reflect.Bool:
		if g.value != "true" && g.value != "false" {
			return strconv.ErrSyntax
		}
		to.SetBool(g.value == "true")
	case reflect.String:
		text, err := f.text(g.value)
		to.SetString(text)
		return err
	case reflect.Uint64:
		n, err := strconv.ParseUint(g.value, 10, 64)
		to.SetUint(n)
		return err
	default:
		return f.number(to, g.value)
	}
	return err
}

// number parses a number with a range. That of a duration is in seconds.
func (f field) number(to reflect.Value, text string) error {
	var v float64
	var err error
	switch {
	case to.Type() == reflect.TypeFor[time.Duration]():
		var d time.Duration
		d, err = time.ParseDuration(text)
		to.SetInt(int64(d))
		v = d.Seconds()
	case to.Kind() == reflect.Float64:
		v, err = strconv.ParseFloat(text, 64)
		to.SetFloat(v)
	default:
		var n int64
		n, err = strconv.ParseInt(text, 10, 64)
		to.SetInt(n)
		v = float64(n)
	}
	if l, ok := f.limit(); err == nil && ok && !l.Allows(v) {
		return strconv.ErrRange
	}
	return err
}

// allowedFor describes the allowed values, more precisely where the error permits it.
func (f field) allowedFor(value string, err error) string {
	if hint := new(report.Hint); errors.As(err, hint) {
		return string(*hint)
	}
	if unknown := new(report.UnknownName); errors.As(err, unknown) {
		return "one of " + strings.Join(report.Names(), ", ") + " before the operator" +
			suggest(string(*unknown), report.Names())
	}
	if f.valueType() == reflect.TypeFor[time.Duration]() && !errors.Is(err, strconv.ErrRange) {
		l, _ := f.limit()
		example := duration(max(l.Min, min(l.Max, 60)))
		if n, err := strconv.ParseFloat(value, 64); err == nil && l.Allows(n) {
			example = value + "s"
		}
		return "a duration with its unit (ms, s, m or h), such as " + example + ", " + f.bounds()
	}
	return allowedURL(f.allowed(), err)
}

// valueType returns the type of the field's value, or of each value in a list.
func (f field) valueType() reflect.Type {
	t := f.flag.Target.Type()
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice && !f.structured() {
		t = t.Elem()
	}
	return t
}

// limit returns the range of a number, or of a time in seconds: the API's, else that of the tags min and max.
func (f field) limit() (l api.Limit, ok bool) {
	if name := f.flag.Tag.Get("limit"); name != "" {
		l, ok = api.SweepLimits[name]
		return l, ok
	}
	if l, ok = api.Limits[f.name]; ok || !f.flag.Tag.Has("min") {
		return l, ok
	}
	unit := number
	if f.valueType() == reflect.TypeFor[time.Duration]() {
		unit = seconds
	}
	return api.Limit{Min: unit(f.flag.Tag.Get("min")), Max: unit(f.flag.Tag.Get("max"))}, true
}

func (f field) limited() bool {
	_, ok := f.limit()
	return ok
}

// number and seconds parse a tag. An invalid one allows nothing, which every test detects.
func number(tag string) float64 {
	v, err := strconv.ParseFloat(tag, 64)
	if err != nil {
		return math.NaN()
	}
	return v
}

func seconds(tag string) float64 {
	d, err := time.ParseDuration(tag)
	if err != nil {
		return math.NaN()
	}
	return d.Seconds()
}

// text checks a text against its form or its list of words. Where there is no default, the empty text means that the
// field is not set.
func (f field) text(value string) (string, error) {
	words := f.words()
	switch {
	case value == "" && !f.flag.HasDefault:
		return "", nil
	case len(words) == 0:
		return f.form().read(value)
	case !slices.Contains(words, value):
		return "", errForm
	}
	return value, nil
}

// list appends the items.
func (f field) list(to reflect.Value, g given) error {
	items := g.items
	if items == nil && g.value != "" {
		items = strings.Split(g.value, ",")
	}
	for _, item := range items {
		v := reflect.New(to.Type().Elem()).Elem()
		if err := f.parse(v, given{value: strings.TrimSpace(item)}); err != nil {
			return err
		}
		to.Set(reflect.Append(to, v))
	}
	if to.Len() == 0 {
		to.SetZero()
	}
	return nil
}

// structured reports whether the field's value is a structure, which is written as JSON where it is a text.
func (f field) structured() bool {
	_, ok := f.flag.Target.Addr().Interface().(structure)
	return ok
}

// words are the values of the tag oneof.
func (f field) words() []string { return strings.Fields(f.flag.Tag.Get("oneof")) }

func (f field) form() form {
	if pattern := f.flag.Tag.Get("pattern"); pattern != "" {
		return form{f.flag.Tag.Get("allowed"), checked(regexp.MustCompile(pattern).MatchString)}
	}
	name := f.flag.Tag.Get("form")
	if name == "" {
		name = "line"
	}
	return forms[name]
}

// allowed describes the values that set accepts.
func (f field) allowed() string {
	t := f.valueType()
	text := f.form().allowed
	own, isOwn := reflect.Zero(t).Interface().(interface{ Allowed() string })
	switch words := f.words(); {
	case isOwn:
		text = own.Allowed()
	case t == reflect.TypeFor[time.Duration]():
		text = "a duration, " + f.bounds()
	case t.Kind() == reflect.Bool:
		text = "true or false"
	case t.Kind() == reflect.Uint64:
		text = fmt.Sprintf("a whole number, 0 to %d", uint64(math.MaxUint64))
	case t.Kind() == reflect.Float64:
		text = "a number, " + f.bounds()
	case t.Kind() != reflect.String && !f.limited():
		text = "a whole number"
	case t.Kind() != reflect.String:
		text = "a whole number, " + f.bounds()
	case len(words) > 0:
		text = enumerate(words)
	}
	if f.flag.Target.Kind() == reflect.Slice && !f.structured() {
		return "a list, each " + text
	}
	return text
}

// bounds describes the range.
func (f field) bounds() string {
	l, _ := f.limit()
	l.Unit = ""
	if f.valueType() != reflect.TypeFor[time.Duration]() {
		return l.String()
	}
	low, high := duration(l.Min), duration(l.Max)
	if l.Above {
		return fmt.Sprintf("more than %s, up to %s", low, high)
	}
	return low + " to " + high
}

// duration formats seconds in the usual form: 5m, not 5m0s.
func duration(s float64) string {
	text := time.Duration(s * float64(time.Second)).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

func enumerate(words []string) string {
	if len(words) == 1 {
		return words[0]
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// shown formats a value for an error: short, on one line, and without a possible password.
func (f field) shown(value string) string {
	const most = 100
	if strings.Contains(value, "@") && (f.structured() || strings.Contains(f.form().allowed, "://")) {
		return hiddenURL
	}
	if strings.HasSuffix(f.flag.Tag.Get("form"), "header") {
		return "an entry (hidden)"
	}
	if utf8.RuneCountInString(value) > most {
		value = string([]rune(value)[:most]) + "…"
	}
	if quoted := strconv.Quote(value); value == "" || strings.Contains(value, " ") || quoted[1:len(quoted)-1] != value {
		return quoted
	}
	return value
}

// format formats a value in the form that set accepts.
func format(v reflect.Value) string {
	if own, ok := v.Interface().(fmt.Stringer); ok && v.Kind() != reflect.Pointer {
		return own.String()
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return ""
		}
		return format(v.Elem())
	case reflect.Slice:
		items := make([]string, v.Len())
		for i := range items {
			items[i] = format(v.Index(i))
		}
		return strings.Join(items, ",")
	case reflect.Float64:
		return strconv.FormatFloat(v.Float(), 'f', -1, 64)
	}
	return fmt.Sprint(v.Interface())
}

// Shown is [Config.Map] without the values of headers.
func (c *Config) Shown() map[string]string {
	values := c.Map()
	for name, value := range values {
		if strings.HasSuffix(name, ".headers") && value != "" {
			entries := strings.Split(value, ",")
			for i, entry := range entries {
				header, _, _ := strings.Cut(entry, "=")
				entries[i] = header + "=(hidden)"
			}
			values[name] = strings.Join(entries, ",")
		}
	}
	return values
}

// Map returns every field as text by its dotted name, without secrets.
func (c *Config) Map() map[string]string {
	m := newModel(*c, io.Discard)
	values := make(map[string]string, len(m.fields))
	for _, f := range m.fields {
		values[f.name] = format(f.flag.Target)
	}
	return values
}
