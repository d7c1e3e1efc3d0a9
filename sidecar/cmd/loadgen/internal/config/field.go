package config

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
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
	} `cmd:"" help:"Check the configuration without starting anything."`
	Health  struct{} `cmd:"" help:"Check whether the load generator running with this configuration is ready."`
	Version struct{} `cmd:"" help:"Print the version."`

	Member struct{} `cmd:"" help:"Run as a member of another load generator: connect to the NATS server given by --join and take work from the coordinator there. API keys for the target are set here."`

	Trial    trialFlags    `cmd:"" help:"Test which of two routing modes or more, or arms, is better at a given concurrency."`
	Sweep    levelsFlags   `cmd:"" help:"Measure modes at several concurrencies."`
	Capacity capacityFlags `cmd:"" help:"Find how many conversations each mode sustains within the SLOs."`
	Compare  Compare       `cmd:"" help:"Compare two existing results; measures nothing."`
	Record   Record        `cmd:"" help:"Record what a running load generator shows, into a file for loadgen replay."`
	Replay   replayFlags   `cmd:"" help:"Serve a recording on all pages, over and over, in place of a run; needs no target."`
	Trace    Trace         `cmd:"" help:"Print what a recorded trace or a dataset holds, and what a replay of it would have to make up; sends nothing."`
	Shadow   Shadow        `cmd:"" help:"Calculate what other routers would have found in the caches, from a recorded request trace."`

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
		kong.TypeMapper(reflect.TypeFor[bool](), m), kong.TypeMapper(reflect.TypeFor[time.Duration](), m),
		kong.KindMapper(reflect.Int, m), kong.KindMapper(reflect.Uint64, m), kong.KindMapper(reflect.Float64, m),
		kong.KindMapper(reflect.String, m), kong.KindMapper(reflect.Slice, m),
	)...)
	if err != nil {
		panic(err) // a tag of Config is invalid, which every test detects
	}
	m.kong = k
	return m
}

// collect assigns every flag its field, its placeholder and the dashes of its name. Kong names a flag by the prefixes
// of its sections, which end in dots, and its struct field.
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

func (m *model) fieldOf(flag *kong.Flag) field {
	f := field{name: strings.ReplaceAll(flag.Name, "-", "_"), flag: flag}
	flag.Name = strings.NewReplacer(".", "-", "_", "-").Replace(flag.Name)
	flag.PlaceHolder = cmp.Or(flag.PlaceHolder, f.placeHolder())
	if s, ok := api.WorkloadSettingOf(f.name); ok {
		flag.Help = strings.TrimSpace(s.Help + " " + flag.Help)
		flag.Default, flag.HasDefault = s.Default, s.Default != ""
	}
	m.byFlag[flag.Value] = f
	return f
}

// given is a value of a variable or of the file, with its source.
type given struct {
	value string
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
		if from, ok := m.from[name]; ok {
			return &badValue{err, from}
		}
		name = name[:max(strings.LastIndex(name, "."), 0)] // switch.http.headers is part of switch.http
	}
	return err
}

// Decode makes the model kong's mapper of all values, so that each of them, whatever its source, is checked by the
// field's own rules.
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
		g = given{fmt.Sprint(token.Value), "--" + f.flag.Name}
	}
	if err := f.set(target, g.value); err != nil {
		return &badValue{err, g.from}
	}
	m.from[f.name] = g.from
	if next := ctx.Scan.Peek(); ctx.Value.Flag == nil && target.Kind() == reflect.Slice && next.IsValue() {
		return m.Decode(ctx, target) // the last argument takes all remaining ones
	}
	return nil
}

// set parses a value, checks it by the field's rules and stores it in target. A list is extended, also one of
// arms or requests.
func (f field) set(target reflect.Value, value string) error {
	var err error
	switch p := target.Addr().Interface().(type) {
	case *bool:
		*p, err = f.bool(value)
	case *int:
		*p, err = strconv.Atoi(value)
		err = f.within(float64(*p), err)
	case *uint64:
		*p, err = strconv.ParseUint(value, 10, 64)
	case *float64:
		*p, err = strconv.ParseFloat(value, 64)
		err = f.within(*p, err)
	case *time.Duration:
		*p, err = time.ParseDuration(value)
		err = f.within(p.Seconds(), err)
	case *string:
		*p, err = f.added(*p, value)
	case *[]string:
		*p, err = f.list(*p, value)
	default:
		panic("config: no rule for the type of " + f.name)
	}
	if inner := new(api.FieldError); errors.As(err, &inner) && f.structured() {
		return &api.FieldError{Field: f.name + inner.Field, Value: inner.Value, Allowed: inner.Allowed}
	}
	if err != nil {
		return api.Refuse(f.name, f.shown(value), f.allowedFor(value, err))
	}
	return nil
}

// allowedFor describes the allowed values, more precisely where the error permits it.
func (f field) allowedFor(value string, err error) string {
	if hint := new(report.Hint); errors.As(err, hint) {
		return string(*hint)
	}
	if _, ok := f.flag.Target.Interface().(time.Duration); ok && !errors.Is(err, strconv.ErrRange) {
		l, _ := f.limit()
		example := duration(max(l.Min, min(l.Max, 60)))
		if n, err := strconv.ParseFloat(value, 64); err == nil && f.within(n, nil) == nil {
			example = value + "s"
		}
		return "a duration with its unit (ms, s, m or h), such as " + example + ", " + f.bounds()
	}
	return allowedURL(f.allowed(), err)
}

func (f field) bool(value string) (bool, error) {
	if value != "true" && value != "false" {
		return false, strconv.ErrSyntax
	}
	return value == "true", nil
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
	if f.flag.Target.Type() == reflect.TypeFor[time.Duration]() {
		unit = seconds
	}
	return api.Limit{Min: unit(f.flag.Tag.Get("min")), Max: unit(f.flag.Tag.Get("max"))}, true
}

func (f field) within(v float64, err error) error {
	if l, ok := f.limit(); err == nil && ok && !l.Allows(v) {
		return strconv.ErrRange
	}
	return err
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

// added returns a text, or the entries of a structured list after those of earlier flags.
func (f field) added(earlier, value string) (string, error) {
	text, err := f.text(value)
	extended := slices.Contains([]string{"arms", "requests"}, f.flag.Tag.Get("form"))
	if err != nil || earlier == "" || text == "" || !extended {
		return text, err
	}
	return f.text(strings.TrimSuffix(earlier, "]") + "," + strings.TrimPrefix(text, "["))
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

func (f field) list(to []string, value string) ([]string, error) {
	if value == "" {
		return to, nil
	}
	for item := range strings.SplitSeq(value, ",") {
		item, err := f.form().read(strings.TrimSpace(item))
		if err != nil {
			return nil, err
		}
		to = append(to, item)
	}
	return to, nil
}

// structured reports whether the field's value is a structure, written as JSON where it is a text.
func (f field) structured() bool {
	return slices.Contains([]string{"arms", "command", "request", "requests"}, f.flag.Tag.Get("form"))
}

// words are the values of the tag oneof.
func (f field) words() []string { return strings.Fields(f.flag.Tag.Get("oneof")) }

func (f field) form() form {
	name := f.flag.Tag.Get("form")
	if name == "" {
		name = "line"
	}
	return forms[name]
}

// allowed describes the values that set accepts.
func (f field) allowed() string {
	switch f.flag.Target.Interface().(type) {
	case bool:
		return "true or false"
	case int:
		return "a whole number, " + f.bounds()
	case uint64:
		return fmt.Sprintf("a whole number, 0 to %d", uint64(math.MaxUint64))
	case float64:
		return "a number, " + f.bounds()
	case time.Duration:
		return "a duration, " + f.bounds()
	case []string:
		return "a list, each " + f.form().allowed
	}
	if words := f.words(); len(words) > 0 {
		return enumerate(words)
	}
	return f.form().allowed
}

// bounds describes the range.
func (f field) bounds() string {
	l, _ := f.limit()
	l.Unit = ""
	if f.flag.Target.Type() != reflect.TypeFor[time.Duration]() {
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
	if f.flag.Tag.Get("form") == "header" {
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
	switch v := v.Interface().(type) {
	case []string:
		return strings.Join(v, ",")
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	default:
		return fmt.Sprint(v)
	}
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
