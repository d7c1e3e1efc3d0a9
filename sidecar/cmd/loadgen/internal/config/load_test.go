package config

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/loadgen/cluster"
	"kvbooth/sidecar/loadgen/report"
	"kvbooth/sidecar/loadgen/workload"
	"kvbooth/sidecar/sim/closedloop"
)

// input is the input of a call of Load. file is the content of booth.yaml, where there is one; files has the others.
type input struct {
	args  []string
	env   []string
	file  string
	files map[string]string
}

func (in input) load() (*Config, Command, error) {
	args := in.args
	if in.file != "" {
		args = append([]string{"--config=booth.yaml"}, args...)
	}
	read := func(field, path, what string) ([]byte, error) {
		if data, ok := in.files[path]; ok {
			return []byte(data), nil
		}
		if path == "booth.yaml" && in.file != "" {
			return []byte(in.file), nil
		}
		return nil, unreadable(field, path, what, os.ErrNotExist)
	}
	return load(args, append([]string{"HOME=/home/someone"}, in.env...), io.Discard, read)
}

func (in input) must(t *testing.T) *Config {
	t.Helper()
	c, _, err := in.load()
	require.NoError(t, err)
	return c
}

const target = "--target-url=http://x:8000"

func TestDefaults(t *testing.T) {
	c, command, err := input{args: []string{target}}.load()
	require.NoError(t, err)
	require.Equal(t, Run, command)
	require.Equal(t, "http://x:8000", c.Target.URL)
	require.Equal(t, 60, c.Concurrency)
	require.Equal(t, api.Range{Min: 3, Max: 5}, c.Turns)
	require.Equal(t, uint64(1), c.Seed)
	require.False(t, c.Start)
	require.Equal(t, "127.0.0.1:8088", c.Listen)
	require.Equal(t, api.SLO{TTFT: .6, TPOT: .06}, c.Settings().SLO)
	require.Equal(t, []api.ModeState{
		{Mode: api.ModeKV, Speculation: api.SpeculationNotRecorded},
		{Mode: api.ModeRoundRobin, Speculation: api.SpeculationNotRecorded},
	}, c.Mode.States())
	require.Zero(t, c.WorkloadSettings().OutputTokens, "answers end where the model ends them")
}

// A mode that is not configured follows from the driver, and is unknown otherwise.
func TestModeAtTheStart(t *testing.T) {
	const (
		both  = "--mode-endpoints=round_robin=http://b,kv=http://x:8000"
		other = "--mode-endpoints=least_loaded=http://b,round_robin=http://c"
	)
	for _, row := range []struct {
		want api.Mode
		args []string
	}{
		{api.ModeUnknown, []string{target}},
		{api.ModeRoundRobin, []string{target, "--mode-mode=round_robin"}},
		{api.ModeUnknown, []string{target, "--mode-driver=simulated"}},
		{api.ModeLeastLoaded, []string{target, "--mode-driver=simulated", "--mode-mode=least_loaded"}},
		{api.ModeKV, []string{target, "--mode-driver=pinned"}},
		{api.ModeRoundRobin, []string{target, "--mode-driver=pinned", "--mode-offers=round_robin"}},
		{api.ModeKV, []string{target, "--mode-driver=endpoints", both}},
		{api.ModeRoundRobin, []string{"--target-url=http://b", "--mode-driver=endpoints", both}},
		{api.ModeKV, []string{"--mode-driver=endpoints", both}},
		{api.ModeLeastLoaded, []string{"--mode-driver=endpoints", other}},
	} {
		require.Equal(t, row.want, input{args: row.args}.must(t).Mode.State().Mode, "%v", row.args)
	}
}

func TestPrecedence(t *testing.T) {
	preset, file := "preset: recorded\n", "turns: {min: 2, max: 4}\n"
	env, flag := []string{"LOADGEN_TURNS_MAX=7"}, []string{target, "--turns-max=9"}
	for _, row := range []struct {
		in   input
		want api.Range
	}{
		{input{args: flag[:1]}, api.Range{Min: 3, Max: 5}},                                // the default
		{input{args: flag[:1], file: preset}, api.Range{Min: 5, Max: 5}},                  // a preset above it
		{input{args: flag[:1], file: preset + file}, api.Range{Min: 2, Max: 4}},           // the file above the preset
		{input{args: flag[:1], file: preset + file, env: env}, api.Range{Min: 2, Max: 7}}, // a variable above the file
		{input{args: flag, file: preset + file, env: env}, api.Range{Min: 2, Max: 9}},     // a flag above all
		{input{args: flag, env: env}, api.Range{Min: 3, Max: 9}},
		{input{args: append(flag, "--preset=recorded")}, api.Range{Min: 5, Max: 9}}, // in any order
		{input{args: flag[:1], env: []string{"LOADGEN_TURNS_MAX="}}, api.Range{Min: 3, Max: 5}},
	} {
		require.Equal(t, row.want, row.in.must(t).Turns, "%+v", row.in)
	}
	chat := input{args: []string{target, "--shape=chat"}, env: env, file: file}.must(t) // which has turns of its own
	require.Equal(t, api.ShapeChat, chat.TrafficShape.Preset)
	number := input{args: []string{target, "--concurrency=5"}, env: []string{"LOADGEN_RATE=2/s"}}.must(t)
	require.Equal(t, api.AtConversations(5), number.WorkloadSettings().Level)
	other := input{
		env:   []string{"LOADGEN_CONFIG=other.yaml"},
		files: map[string]string{"other.yaml": "target:\n  url: https://y/v1"},
	}.must(t)
	require.Equal(t, "https://y", other.Target.URL)
	require.Equal(t, "other.yaml", other.File)
	for _, flag := range []string{"--model=llama", "--target-model=llama"} { // a short name in addition to the field's
		c := input{args: []string{target, flag}, env: []string{"LOADGEN_TARGET_MODEL=other"}}.must(t)
		require.Equal(t, "llama", c.Target.Model, flag)
	}
}

// A preset gives answers of a simulation the lengths of the recorded results. Answers of a model end by themselves.
func TestPresets(t *testing.T) {
	recorded := closedloop.Recorded()
	shape := func(args ...string) workload.Settings {
		return input{args: append([]string{target}, args...)}.must(t).WorkloadSettings()
	}
	for _, args := range [][]string{
		{"--preset=demo"},
		{"--preset=recorded", "--deployment-kind=simulated"},
		{"--preset=recorded", "--deployment-kind=mocked"},
		{"--preset=recorded", "--mode-driver=simulated"},
	} {
		s := shape(args...)
		require.Equal(t, recorded.Turns, s.Turns, args)
		require.Equal(t, *recorded.Output, s.OutputTokens, args)
		require.Equal(t, recorded.MaxTokens, s.MaxTokens, args)
		require.Equal(t, 0., s.ThinkTime.Seconds(), args)
		require.InDelta(t, recorded.StartRate, s.StartRate, 0, args)
	}
	require.Zero(t, shape("--deployment-kind=simulated").OutputTokens, "no preset, no lengths")
	require.Zero(t, shape("--preset=recorded", "--deployment-kind=real").OutputTokens)
	model := input{args: []string{target, "--preset", "recorded"}}.must(t)
	require.Equal(t, api.Range{Min: 5, Max: 5}, model.Turns)
	require.Equal(t, 1024, model.MaxTokens)
	require.Equal(t, "elaborate further", model.Followup.Text)
	require.Zero(t, model.WorkloadSettings().OutputTokens)
	require.Empty(t, input{args: []string{target, "--preset=demo"}}.must(t).Followup.Text, "the built-in questioner asks")

	require.Equal(t, api.Range{Min: 4, Max: 4}, shape("--preset=demo", "--turns-max=4").Turns, "what is given wins")
	require.Zero(t, shape("--preset=demo", "--rate=2/s").TargetRPS, "no limit beside a rate")
	require.Equal(t, api.Distribution{Mean: 50, CV: .3}, shape("--preset=demo", "--output-tokens-mean=50").OutputTokens)
	require.Zero(t, shape("--preset=demo", "--max-tokens=64").OutputTokens, "answers as long as allowed")
}

// Flags may switch off what the file switches on.
func TestSwitches(t *testing.T) {
	on := func(args ...string) *Config {
		return input{args: append(args, target), file: "start: true\npublic_page: true"}.must(t)
	}
	require.True(t, on().Start)
	require.False(t, on("--no-start").Start)
	require.False(t, on("--start=false").Start)
	require.False(t, on("--public-page=false").PublicPage)
}

func TestLists(t *testing.T) {
	want := []string{"http://a/metrics", "http://b"}
	for _, in := range []input{
		{args: []string{target, "--cluster-metrics-urls=http://a/metrics,http://b/"}},
		{args: []string{target, "--cluster-metrics-urls=http://a/metrics", "--cluster-metrics-urls", "http://b"}},
		{args: []string{target}, env: []string{"LOADGEN_CLUSTER_METRICS_URLS=http://a/metrics, http://b"}},
		{args: []string{target}, file: "cluster:\n  metrics_urls:\n  - http://a/metrics\n  - http://b\n"},
		{args: []string{target}, file: "cluster.metrics_urls: [http://a/metrics, http://b]"},
		{
			args: []string{target, "--cluster-metrics-urls=http://a/metrics,http://b"},
			file: "cluster: {metrics_urls: [http://c]}",
		},
	} {
		require.Equal(t, want, in.must(t).Cluster.MetricsURLs, "%+v", in)
	}
	none := input{args: []string{target, "--cluster-metrics-urls=no-target"}}.must(t).Cluster.MetricsURLs
	require.Equal(t, []string{"no-target"}, none, "the workers come from the turns")
	c := input{args: []string{
		"--arms=a=http://a", "--arms", "b=http://b", "--cold-http=http://x", "--cold-http=http://y",
	}}.must(t)
	require.Equal(t, `[{"name":"a","url":"http://a"},{"name":"b","url":"http://b"}]`, c.Arms.String())
	require.Equal(t, `[{"url":"http://x"},{"url":"http://y"}]`, c.Cold.HTTP.String())
}

// A setting has one name. Files, variables and flags of former versions, which have another, are read.
func TestEarlierNames(t *testing.T) {
	for _, in := range []input{
		{args: []string{target}, file: "baseline:\n  default: this target\n"},
		{args: []string{target}, file: "baseline.default: this target"},
		{args: []string{target}, file: "default_baseline: this target"},
		{args: []string{target}, env: []string{"LOADGEN_BASELINE_DEFAULT=this target"}},
		{args: []string{target}, env: []string{"LOADGEN_DEFAULT_BASELINE=this target", "LOADGEN_BASELINE_DEFAULT=other"}},
		{args: []string{target, "--baseline-default=this target"}, file: "default_baseline: other"},
		{args: []string{target, "--default-baseline=this target"}, env: []string{"LOADGEN_BASELINE_DEFAULT=other"}},
	} {
		c := in.must(t)
		require.Equal(t, api.ThisTarget, c.Settings().DefaultBaseline, "%+v", in)
		require.NotContains(t, c.Map(), "baseline.default")
	}
	input{args: []string{target}, file: "baseline: {default: a}\ndefault_baseline: b"}.refused(t,
		"default_baseline: set twice; first set in line 1 (from booth.yaml, line 2)")
}

// A file with aliases, merged keys and headers with commas in the lists and objects of arms.
func TestArmsInYAML(t *testing.T) {
	c := input{file: `
arms:
- &first
  name: a # the router of the booth
  url: http://a:1
  headers: {x-route: "a, b"}
- <<: *first
  name: b
  ca_file: ca
`, files: map[string]string{"ca": someCA(t)}}.must(t)
	require.Equal(t, map[string]string{"X-Route": "a, b"}, c.Mode.Served[1].Headers)
	require.Equal(t, "http://a:1", c.Mode.Served[1].URL)
	a, own := c.At(c.Mode.Served[0])
	require.False(t, own, "address and headers alone need no client")
	require.Empty(t, a.Target.Opened.CA)
	b, own := c.At(c.Mode.Served[1])
	require.True(t, own)
	require.NotEmpty(t, b.Target.Opened.CA, "an arm has all fields of a target")
}

func someCA(t *testing.T) string {
	t.Helper()
	ca, _ := certificate(t)
	return ca
}

// A section whose lines are all commented out is still a section.
func TestEmptyFileAndSections(t *testing.T) {
	for _, file := range []string{"# nothing\n", "---\n", "slo:\n  # ttft: 1s\n", "target: {}\nslo: ~"} {
		require.Equal(t, 60, input{args: []string{target}, file: file}.must(t).Concurrency, file)
	}
}

func TestTargetIsNormalized(t *testing.T) {
	for given, want := range map[string]string{
		"http://x":                 "http://x",
		"http://x/":                "http://x",
		"http://x:8000/v1":         "http://x:8000",
		"https://x/v1/":            "https://x",
		"http://x/serve/llama/v1/": "http://x/serve/llama/v1",
		"http://x/serve/llama":     "http://x/serve/llama",
		"http://x/v1?a=1&b=2":      "http://x?a=1&b=2",
		"http://x/v1?":             "http://x",

		"http://x/openai/deployments/y/chat/completions?api-version=1": "http://x/openai/deployments/y?api-version=1",
		"http://x:8000/v1/chat/completions":                            "http://x:8000",
		"http://x/a%2Fb/chat/completions/":                             "http://x/a%2Fb",
		"HTTP://X/v1":                                                  "http://X",
		"http://[::1]:8000":                                            "http://[::1]:8000",
	} {
		require.Equal(t, want, input{args: []string{"--target-url", given}}.must(t).Target.URL, given)
	}
}

// The values of headers come from the configuration, from files or from variables, and are never shown.
func TestHeaders(t *testing.T) {
	in := input{
		args: []string{
			target, "--followup-headers=api-key=file:key,X-Empty=env:SPACED", "--twin-target-url=http://twin:8000",
		},
		env: []string{"SPACED=a, b", "LOADGEN_TWIN_TARGET_HEADERS=x-tenant=b"}, files: map[string]string{"key": "s3cret\n"},
		file: "target:\n  headers:\n    X-Tenant: a\n    api-key: file:key\ncluster:\n  headers: [X-Tenant=c]\n",
	}
	c := in.must(t)
	require.Equal(t, map[string]string{"X-Tenant": "a", "Api-Key": "s3cret"}, c.Target.Opened.Headers)
	require.Equal(t, map[string]string{"Api-Key": "s3cret", "X-Empty": "a, b"}, c.Followup.Opened.Headers)
	require.Equal(t, map[string]string{"X-Tenant": "b"}, c.ForTwin().Target.Opened.Headers)
	require.Equal(t, map[string]string{"X-Tenant": "c"}, c.Cluster.Opened.Headers)
	require.Equal(t, "X-Tenant=(hidden),api-key=(hidden)", c.Shown()["target.headers"])
	require.NotContains(t, fmt.Sprint(c.Shown()), "s3cret")

	member, _, err := load([]string{"member"}, append(c.ForMember("one"),
		"LOADGEN_MEMBERS_NATS_URL=nats://127.0.0.1:1"), io.Discard, readFile)
	require.NoError(t, err)
	require.Equal(t, c.Target.Opened.Headers, member.Target.Opened.Headers)
	require.Empty(t, member.Followup.Opened.Headers, "members ask no questions")
}

// Flags and variables of other programs are taken as this one's settings. A key goes only to the server whose address
// stands beside it, and never comes from the command line.
func TestFlagsOfOtherPrograms(t *testing.T) {
	openAI := []string{"OPENAI_BASE_URL=http://gateway:8000/v1", "OPENAI_API_KEY=s3cret"}
	c := input{args: []string{"-H", "X-Tenant: a", "--header=X-Team:b"}, env: openAI}.must(t)
	require.Equal(t, "http://gateway:8000", c.Target.URL)
	require.Equal(t, Secret("s3cret"), c.Target.APIKey)
	require.Equal(t, map[string]string{"X-Tenant": "a", "X-Team": "b"}, c.Target.Opened.Headers)
	require.Empty(t, input{args: []string{target}, env: openAI}.must(t).Target.APIKey, "another server")
	c = input{env: append(openAI, "LOADGEN_TARGET_API_KEY=own")}.must(t)
	require.Equal(t, Secret("own"), c.Target.APIKey)
	for _, args := range [][]string{{"--api-key", "s3cret"}, {"--target-api-key=s3cret"}, {"-H", "s3cret"}} {
		_, _, err := input{args: append(args, target)}.load()
		require.Error(t, err)
		require.NotContains(t, err.Error(), "s3cret")
	}
}

// Additional fields of a request are sent to the server as numbers and objects.
func TestRequestFields(t *testing.T) {
	c := input{args: []string{target, "--request-ignore-eos=true", "--request-temperature=0", "--request-body", `{"min_p": 0.1, "stream_options": {"a": [1]}}`}}.must(t)
	fields, err := json.Marshal(c.Request.Fields())
	require.NoError(t, err)
	require.JSONEq(t, `{"ignore_eos":true,"temperature":0,"min_p":0.1,"stream_options":{"a":[1]}}`, string(fields))
	require.Nil(t, input{args: []string{target}}.must(t).Request.Fields())
	r := input{args: []string{target, "--request-priority=7"}}.must(t).Request
	require.Equal(t, `{"nvext":{"agent_hints":{"priority":7}}}`, r.Text(), "the shape of the workload names it")
}

// Arms bring their addresses, headers and modes; how they are switched follows from what they share.
func TestArms(t *testing.T) {
	const two = "arms:\n- {name: cache-aware, url: http://a:1/v1, mode: kv, headers: {routing-strategy: prefix-cache}}\n" +
		"- {name: round robin, url: http://b:1}\n"
	c := input{file: two}.must(t)
	aware := api.ModeState{Arm: "cache-aware", Mode: api.ModeKV, Speculation: api.SpeculationNotRecorded}
	robin := api.ModeState{Arm: "round robin", Mode: api.ModeUnknown, Speculation: api.SpeculationNotRecorded}
	prefix := map[string]string{"Routing-Strategy": "prefix-cache"}
	require.Equal(t, []cluster.Arm{
		{State: aware, URL: "http://a:1", Field: "arms[0].url", Headers: prefix},
		{State: robin, URL: "http://b:1", Field: "arms[1].url"},
	}, c.Mode.Addresses())
	require.Equal(t, "endpoints", c.Mode.Driver)
	require.Equal(t, c.Mode.Served[0].State, c.Mode.State(), "the first arm")
	require.Equal(t, "http://a:1", c.Target.URL)

	c = input{file: two + "mode: {arm: round robin}\ntwin: {mode: {arm: cache-aware}}"}.must(t)
	require.Equal(t, c.Mode.Served[1].State, c.Mode.State())
	require.Equal(t, "http://b:1", c.Target.URL)
	require.Equal(t, "http://a:1", c.ForTwin().Target.URL)
	require.Equal(t, c.Mode.Served[0].State, c.ForTwin().Mode.State())

	c = input{args: []string{target, "--arms=random", "--twin-target-url=http://b", "--twin-mode-driver=pinned"}}.must(t)
	require.Equal(t, "random", c.Mode.State().Name(), "one arm is a name for what target.url serves")
	require.Equal(t, api.ModeKV, c.ForTwin().Mode.State().Mode, "a twin with a driver of its own is no arm")

	for driver, more := range map[string]string{
		"manual": "", "command": " --switch-command=true", "http": " --switch-http=http://x:1/{arm}",
	} {
		c = input{args: append([]string{target, "--arms=a,b"}, strings.Fields(more)...)}.must(t)
		require.Equal(t, driver, c.Mode.Driver)
		require.Equal(t, api.ModeUnknown, c.Mode.State().Mode, "no arm is known to serve")
		require.Len(t, c.Mode.States(), 2)
	}
	c = input{file: two + "mode: {mode: kv}\nswitch: {command: \"true\"}"}.must(t)
	require.Equal(t, c.Mode.Served[0].State, c.Mode.State(), "the only arm of that mode")

	c = input{
		env: []string{"KEY=k1"}, files: map[string]string{"key": "k2\n"},
		file: two + "switch: {http: {url: http://x:1, headers: {authorization: env:KEY}}}\n" +
			"cold: {http: [{url: http://y:1, headers: {content-type: text/plain, x-key: file:key}}]}",
	}.must(t)
	require.Equal(t, map[string]string{"Authorization": "k1"}, c.Switch.Request.Headers)
	require.Equal(t, map[string]string{"Content-Type": "text/plain", "X-Key": "k2"}, c.Cold.Requests[0].Headers)
	require.NotContains(t, fmt.Sprint(c.Map()), "k2")
	_, _, err := input{file: two + "mode: {mode: round_robin}"}.load()
	require.ErrorContains(t, err, "mode that exactly one arm has, or leave it out (cache-aware, round robin)")
	var program Program
	require.NoError(t, program.UnmarshalText([]byte(`["./switch.sh","a, b","{arm}"]`)))
	require.Equal(t, Program{"./switch.sh", "a, b", "{arm}"}, program)
}

// An arm takes the fields of the target that may differ between routers, by the same rules. Arms at one address differ
// by them, too.
func TestArmsTakeFieldsOfTheTarget(t *testing.T) {
	const arms = `
target: {model: m, session: "header:X-Shared", worker_header: X-Engine}
cluster: {metrics_urls: [http://all:1]}
cold: {http: ["POST http://{worker}/reset"]}
arms:
- {name: a, url: "http://gateway:1", model: gpt, api_key_file: key, router: litellm, session: "body:user"}
- {name: b, url: "http://gateway:1", worker_header: x-pod, request_id: "off", metrics_urls: [no-target, http://b:1/]}
`
	c := input{file: arms, files: map[string]string{"key": "k1\n"}}.must(t)
	require.Equal(t, "endpoints", c.Mode.Driver, "one address, but other requests")
	a, _ := c.At(c.Mode.Served[0])
	b, _ := c.At(c.Mode.Served[1])
	require.Equal(t, Server{
		URL: "http://gateway:1", Model: "gpt", APIKey: "k1", APIKeyFile: "key", Routing: chat.Routing{
			Router: "litellm", WorkerHeader: "X-Engine", Session: chat.Session{Kind: chat.SessionBody, Name: "user"},
			RequestID: "auto",
		},
	}, a.Target.Server)
	require.Equal(t, Server{URL: "http://gateway:1", Model: "m", Routing: chat.Routing{
		WorkerHeader: "X-Pod", Session: chat.Session{Kind: chat.SessionHeader, Name: "X-Shared"}, RequestID: "off",
	}}, b.Target.Server)
	require.Equal(t, []string{"http://all:1"}, a.Cluster.MetricsURLs)
	require.Equal(t, []string{"no-target", "http://b:1"}, b.Cluster.MetricsURLs)
	require.Equal(t, []string{"all:1", "b:1"}, c.Workers())
	require.True(t, c.SharesMetrics("a"))
	require.False(t, c.SharesMetrics("b"))
	require.NotContains(t, fmt.Sprint(c.Map()), "k1")
	for entry, want := range map[string]string{
		"session: X-Id":                            "arms[1].session: ",
		"router: nginx":                            "arms[1].router: nginx is not allowed: smg, ",
		"request_id: maybe":                        "arms[1].request_id: ",
		"worker_header: a b":                       "arms[1].worker_header: ",
		"metrics_urls: [ftp://b]":                  "arms[1].metrics_urls: ",
		"metrics_urls: [1]":                        "arms[1].metrics_urls[0]: ",
		"api_key_file: missing":                    "arms[1].api_key_file: ",
		`session: "body:temperature"`:              "arms[1].session: ",
		`session: "header:X-Y", headers: {x-y: z}`: "target.session: header:X-Y is not allowed: a header that is not in arms[1]",
	} {
		_, _, err := input{
			args: []string{"--request-temperature=0"},
			file: "arms:\n- {name: a, url: http://a}\n- {name: b, url: http://b, " + entry + "}",
		}.load()
		require.ErrorContains(t, err, want, entry)
	}
	_, _, err := input{file: "members: {count: 2}\n" + arms, files: map[string]string{"key": "k"}}.load()
	require.ErrorContains(t, err, "arms[0]: a is not allowed: no model, key, router, session or other field of target")
}

// With an address for each mode, the target is that of the mode at the start.
func TestEndpoints(t *testing.T) {
	c := input{file: "mode:\n  driver: endpoints\n  mode: round_robin\n  speculation: off\n  endpoints:\n  - " +
		"kv=http://kv:8000/v1\n  - round_robin=http://rr:8000\n  - kv/eagle3=http://e"}.must(t)
	require.Equal(t, "http://rr:8000", c.Target.URL)
	const key = "mode.endpoints"
	require.Equal(t, []cluster.Arm{
		{State: api.ModeState{Mode: api.ModeKV, Speculation: api.SpeculationOff}, URL: "http://kv:8000", Field: key},
		{State: api.ModeState{Mode: api.ModeRoundRobin, Speculation: api.SpeculationOff}, URL: "http://rr:8000", Field: key},
		{State: api.ModeState{Mode: api.ModeKV, Speculation: api.SpeculationEagle3}, URL: "http://e", Field: key},
	}, c.Mode.Addresses())
}

// Fields that twin.* omits are the lane main's, or follow from them. The twin's key is sent only to its own server, and
// main's not to the twin's.
func TestTwin(t *testing.T) {
	require.Nil(t, input{args: []string{target}}.must(t).ForTwin())

	c := input{
		args: []string{
			target, "--model=llama", "--target-stall-timeout=9s", "--mode-driver=pinned",
			"--twin-target-url=http://b/v1", "--twin-target-api-key-file=b",
		},
		env: []string{"LOADGEN_TARGET_API_KEY=of-a"}, files: map[string]string{"b": "of-b"},
	}.must(t)
	b := c.ForTwin()
	require.Equal(t, "http://b", b.Target.URL)
	require.Equal(t, "llama", b.Target.Model)
	require.Equal(t, "9s", b.Target.StallTimeout.String())
	require.Equal(t, "of-b", string(b.Target.APIKey))
	require.Equal(t, api.ModeState{Mode: api.ModeRoundRobin, Speculation: api.SpeculationNotRecorded}, b.Mode.State(),
		"another one than main's")
	require.Equal(t, "pinned", b.Mode.Driver)
	require.Equal(t, c.WorkloadSettings(), b.WorkloadSettings())
	require.Empty(t, input{
		args: []string{target, "--twin-target-url=http://b"},
		env:  []string{"LOADGEN_TARGET_API_KEY=of-a"},
	}.must(t).ForTwin().Target.APIKey)

	// both addresses of the driver endpoints at once, chosen by the twin's mode or address
	two := "mode: {driver: endpoints, mode: kv, endpoints: [kv=http://kv:8000, round_robin=http://rr:8000]}\n"
	for _, more := range []string{"twin.mode.mode: round_robin", "twin.target.url: http://rr:8000"} {
		c = input{file: two + more, env: []string{"LOADGEN_TARGET_API_KEY=of-both"}}.must(t)
		b = c.ForTwin()
		require.Equal(t, "http://kv:8000", c.Target.URL)
		require.Equal(t, "http://rr:8000", b.Target.URL)
		require.Equal(t, api.ModeRoundRobin, b.Mode.State().Mode)
		require.Equal(t, c.Mode.Addresses(), b.Mode.Addresses(), "either may be switched to the other's")
		require.Equal(t, "of-both", string(b.Target.APIKey))
	}
	b = input{file: two + "twin.mode: {driver: manual}\ntwin.target.url: http://elsewhere"}.must(t).ForTwin()
	require.Equal(t, api.ModeUnknown, b.Mode.State().Mode)

	// another deployment
	c = input{args: []string{
		target, "--twin-target-url=http://b", "--deployment-gpu=H200", "--deployment-workers=3",
		"--twin-deployment-gpu=A100", "--twin-deployment-chunked-prefill=false",
	}}.must(t)
	require.Equal(t, Deployment{GPU: "A100", Workers: 3, ChunkedPrefill: "false"}, c.ForTwin().Deployment)
	require.Equal(t, Deployment{GPU: "H200", Workers: 3}, c.Deployment)
	_, _, err := input{args: []string{target, "--twin-deployment-gpu=A100"}}.load()
	require.ErrorContains(t, err, "twin.target.url is required")

	// where metrics come from
	more := []string{
		"--prometheus-url=http://p", "--prometheus-namespace=a", "--twin-target-url=http://b",
		"--cluster-metrics-urls=http://w",
	}
	b = input{args: append(more, target, "--twin-prometheus-namespace=b")}.must(t).ForTwin()
	require.Equal(t, Prometheus{URL: "http://p", Namespace: "b"}, b.Prometheus)
	c = input{args: append(more, "--target-url=http://booth-frontend.a.svc:8000", "--twin-prometheus-namespace=a",
		"--twin-mode-kubernetes-name=booth-twin")}.must(t)
	require.Equal(t, Prometheus{URL: "http://p", Namespace: "a", Graph: "booth", Beside: "booth-twin"}, c.Prometheus)
	require.Equal(t, Prometheus{URL: "http://p", Namespace: "a", Graph: "booth-twin", Beside: "booth"},
		c.ForTwin().Prometheus)
	b = input{args: append(more, target, "--twin-cluster-metrics-urls=http://x,http://y")}.must(t).ForTwin()
	require.Equal(t, Prometheus{}, b.Prometheus)
	require.Equal(t, []string{"http://x", "http://y"}, b.Cluster.MetricsURLs)
}

const (
	urlAllowed   = "an http:// or https:// URL with a host, without user or fragment, such as http://127.0.0.1:8000"
	tokenAllowed = "16 to 512 visible ASCII characters without spaces"
	lineAllowed  = "one line of at most 200 characters"
)

// refusesLast requires an error that names the last of several settings, its source and what is allowed; "": what its
// field allows by itself. The settings are flags and variables.
func refusesLast(t *testing.T, settings []string, allowed string) {
	t.Helper()
	var in input
	for _, s := range settings {
		if strings.HasPrefix(s, envPrefix) {
			in.env = append(in.env, s)
		} else {
			in.args = append(in.args, s)
		}
	}
	source, value, _ := strings.Cut(settings[len(settings)-1], "=")
	fields := newModel(Config{}, io.Discard).fields
	i := slices.IndexFunc(fields, func(f field) bool { return source == "--"+f.flag.Name || source == f.env() })
	require.GreaterOrEqual(t, i, 0, source)
	allowed = cmp.Or(allowed, fields[i].allowed())
	in.refused(t, fmt.Sprintf("%s: %s is not allowed: %s (from %s)", fields[i].name, value, allowed, source))
}

// refused requires that nothing is returned but the error of a field, or of kong, with this text.
func (in input) refused(t *testing.T, want string) {
	t.Helper()
	c, command, err := in.load()
	require.EqualError(t, err, want, "%+v", in)
	require.Nil(t, c)
	require.Empty(t, command)
	if !strings.HasPrefix(want, "un") { // kong's own message, which concerns no field
		require.ErrorAs(t, err, new(*api.FieldError), want)
	}
}

// A value that the rule of its field refuses is named with what CONFIGURATION.md lists as allowed.
func TestRefusedValues(t *testing.T) {
	for _, setting := range []string{
		"--concurrency=0", "--concurrency=many", "--concurrency=1e3", "LOADGEN_CONCURRENCY=100001", "LOADGEN_SEED=-1",
		"--start-rate=0", "--openings=-1", "--openings=1.5", "--target-rps=NaN", "--target-rps=Inf", "--start=1",
		"--request-temperature=3", "--request-priority=2147483648", "--request-body=[1]",
		"--target-session=body:stream_options",
		"--target-session=cookie:a", "--target-session=header:Host", "--target-session=header:User-Agent",
		"--target-session=returned:Set-Cookie", "--target-session=body:model",
		"--preset=fast", "--vendor=acme", "--hosts=booth.local:8088", "--listen=8088", "--listen=127.0.0.1:65536",
		"--mode-driver=automatic", "--mode-mode=random", "--mode-offers=kv,kv/medusa", "--mode-endpoints=http://b",
		"--cluster-metrics-urls=no-targets,http://b", "--corpus-s3-bucket=Te", "--corpus-s3-endpoint=http://x/y",
		"--target-url=127.0.0.1:8000", "--target-url=localhost:8000", "--target-url=ftp://x", "--target-url=http://:8000",
		"--target-url=http://x#",
	} {
		refusesLast(t, []string{setting}, "")
	}
}

// The last of several settings has a value that the others, or its own content, do not allow.
func TestRefusedCombinations(t *testing.T) {
	const (
		modes   = "one of the available modes (kv, round_robin)"
		timed   = "a duration with its unit (ms, s, m or h), such as "
		ofTexts = "leave it out unless the shape (shape.preset) is recorded; a trace and other shapes plan what " +
			"conversations send"
		facing = "--mode-driver=endpoints --mode-mode=kv --mode-endpoints=kv=http://x:8000,round_robin=http://b "
	)
	for _, row := range []struct{ settings, allowed string }{
		{"--target-url=http://x:99999", urlAllowed + "; a port is at most 65535"},
		{"--think-time=5", timed + "5s, 0s to 1h"},
		{"--rate=0/s", api.AllowedRates},
		{"--rate=2/s,4/s", api.AllowedRates},
		{"--rate=2/s..20/s", api.AllowedRates},
		{"--rate=2/s..8/s..20/s/10m", api.AllowedRates},
		{"--rate=12/s/5m", api.AllowedRates},
		{"--rate=2/s,0/s/5m", api.AllowedRates},
		{"--rate=2/s,4/s/10ms", api.AllowedRates},
		{"trial --rate=2/s,4/s/5m", "one rate, such as 12/s, with loadgen trial"},
		{"--concurrency=5 --rate=2/s", "one of rate and concurrency, which is 5 (from --concurrency)"},
		{"sweep --concurrency=5", "leave it out with loadgen sweep, which takes --levels"},
		{"--trace-speed=2", "leave it out without a trace (--trace)"},
		{"--duration=1m --max-inflight=9", "leave it out without a rate (--rate)"},
		{"--rate=2/s --burstiness=2", "leave it out unless arrivals is gamma"},
		{"--shape=chat --shape-groups=5", "leave it out unless prompts of the shape (shape.preset) begin with those of " +
			"groups: prefix, rag, agent, few-shot, and mixed with one of them"},
		{"--shape=chat --turns-min=4", ofTexts},
		{"--trace=x.jsonl --openings=4", ofTexts},
		{"--shape=rag --max-tokens=4", "leave it out unless the shape (shape.preset) is recorded; shape.answer_tokens sets " +
			"the lengths of others"},
		{"--trace=x.jsonl --shape-preset=chat", "leave it out with a trace (--trace), which is itself traffic"},
		{"LOADGEN_DURATION=60", timed + "60s, 0s to 8760h"},
		{"--fail-if=error_rate>1", "one of > >= < <= and a percentage up to 100%, or a number up to 1, such as " +
			"error_rate>1%; this one can never be met"},
		{"--fail-if=verdict>ok", "= and one of ok, noticeable, bottleneck, unknown, such as verdict=ok"},
		{"--fail-if=tftt_p95>1s", "one of " + strings.Join(report.Names(), ", ") +
			" before the operator; did you mean ttft_p95?"},
		{"--target-headers=a=env:NOT_SET", "a variable that is set"},
		{`--request-body={"user":"x"} --target-session=body:user`, "a field that is not in request.body"},
		{"--max-concurrency=50 --slider-max=50 --concurrency=60", "1 to 50 (max_concurrency)"},
		{"--turns-min=6", "1 to 5"},
		{"--warmup=30s", "0s without an end of the run: set duration, requests, or a trace that does not loop"},
		{"--rate=2/s,4/s/5m --warmup=30s", "0s with a rate that changes, whose changes begin with the run"},
		{"--output-tokens-mean=2000", "0 to 1024 (max_tokens)"},
		{"--slider-min=180", "less than 180 (slider.max)"},
		{"--slider-increment=121", "at most 120 (slider.max - slider.min)"},
		{"--mode-mode=least_loaded", modes},
		{"--mode-driver=pinned --mode-mode=least_loaded", modes},
		{"--mode-driver=pinned --mode-offers=round_robin --mode-mode=kv", "one of the available modes (round_robin)"},
		{"--mode-driver=endpoints --mode-endpoints=round_robin=http://x:8000 --mode-mode=kv", "one of the available " +
			"modes (round_robin=http://x:8000)"},
		{"--twin-target-url=http://b --twin-mode-mode=least_loaded", modes},
		{
			"--twin-mode-driver=endpoints --twin-mode-endpoints=kv=http://c --twin-target-url=http://b",
			"one of twin.mode.endpoints (kv=http://c)",
		},
		{facing + "--twin-mode-mode=kv", "a mode with a different URL than lane main, http://x:8000"},
		{"--twin-target-url=http://b --twin-prometheus-namespace=b", "set prometheus.url, too, or leave it empty"},
		{
			"--twin-target-url=http://b --prometheus-url=http://p --prometheus-namespace=b --twin-prometheus-namespace=b",
			"a different namespace than prometheus.namespace; or set mode.kubernetes.name and twin.mode.kubernetes.name, " +
				"whose pods' names separate them; or leave it empty to scrape its target and twin.cluster.metrics_urls",
		},
		{"--target-router=smg --mode-driver=pinned", "another driver, or arms, before smg (target.router): pinned names " +
			"the instance of each turn, which only a Dynamo takes"},
		{"--arms=a,b --mode-driver=pinned", "leave it out with arms; the arms of this driver are its modes"},
		{"--arms=a,b --mode-offers=kv", "leave it out with arms, which are what is on offer"},
		{"--arms=a=http://a,b=http://b --twin-mode-arm=z", "one of the arms (a, b)"},
		{"--arms=a,b --switch-command=./no-such-program", "a program that can be run (stat ./no-such-program: no such " +
			"file or directory)"},
		{"--arms=a=http://a,b=http://b --switch-ready-url=http://x:1", "leave it out with arms that have a url or " +
			"headers of their own; they are not switched"},
		{"--arms=a,b --switch-ready-url=http://{worker}/x", "an http:// or https:// URL with a host, in which {arm}, " +
			"{url} and {mode} may stand"},
		{"--switch-ready-turns=2", "leave it out without arms, or name the arms (arms)"},
		{"--arms=a,b --switch-command=true --cold-http=http://{worker}/reset", "a URL without {worker}; or set " +
			"cluster.metrics_urls, whose hosts are the workers"},
		{"--preset=recorded --followup-url=http://e", "leave it empty if followup.text is set (the preset recorded sets " +
			"it, too)"},
		{"--mode-driver=kubernetes --mode-kubernetes-name=a --mode-kubernetes-selector=b=c", "leave it empty if " +
			"mode.kubernetes.name is set"},
		{"--corpus-refresh=10ms", "0s, or at least 1s"},
		{"--store-max-bytes=2", "0 (no limit), or at least 16777216"},
	} {
		refusesLast(t, append([]string{target}, strings.Fields(row.settings)...), row.allowed)
	}
}

// Arms, and the programs and requests that switch them, are refused by the part that is wrong.
func TestRefusedArms(t *testing.T) {
	const (
		braces    = "in braces only {arm}, {url} or {mode}"
		templated = "an http:// or https:// URL with a host, without user or fragment; " + braces
		anyBraces = "in braces only {worker}, {arm}, {url} or {mode}"
		oneLine   = "one line of visible ASCII characters and spaces as the value"
	)
	for _, row := range []struct{ flags, want string }{
		{"--arms=[]", "arms: an empty list is not allowed: at least one arm"},
		{"--arms=a=http://a,a=http://b", "arms[1].name: a is not allowed: a name that no other arm has"},
		{"--arms=a --arms=a", "arms[1].name: a is not allowed: a name that no other arm has"},
		{"--arms=a=http://a,b=ftp://b", "arms[1].url: ftp://b is not allowed: " + urlAllowed},
		{"--arms=a=http://u:p@x", "arms[0].url: a URL with a user or password is not allowed: " + urlAllowed},
		{"--arms=a=http://x:99999", "arms[0].url: http://x:99999 is not allowed: " + urlAllowed +
			"; a port is at most 65535"},
		{"--arms=[{name: a, mode: random}, {name: b}]", `arms[0].mode: random is not allowed: kv, round_robin, ` +
			`least_loaded or unknown`},
		{"--arms=[{name: a, headers: {Host: x}}, {name: b}]", "arms[0].headers: Host is not allowed: the name of " +
			"another HTTP header, since the url has the host"},
		{"--arms=[{name: a, headers: {x-dup: '1', X-Dup: '2'}}, {name: b}]", "arms[0].headers: X-Dup is not allowed: " +
			"each header once, in upper or lower case"},
		{"--arms=[{name: a, headers: {X: a, X: b}}]", "arms[0].headers: X is not allowed: each header once, in " +
			"upper or lower case"},
		{"--arms=[{name: a, headers: {X: 5}}]", "arms[0].headers: X (value hidden) is not allowed: a text in quotes as " +
			"the value"},
		{"--arms=[{name: a, headers: X}]", "arms[0].headers: an entry (hidden) is not allowed: a list, each " +
			forms["header"].allowed},
		{"--members=1 --arms=[{name: a, headers: {X-A: x}}, {name: b}]", "arms[0].headers: a is not allowed: no headers " +
			"of an arm with members, which would not send them; give each arm a url of its own"},
		{"--arms=[{name: a, weight: x}, {name: b}]", `arms[0]: unknown field "weight" is not allowed: one of the fields ` +
			enumerate(namesOf(&Arm{}))},
		{"--arms=[{name: 5}]", "arms[0].name: 5 is not allowed: a text in quotes"},
		{"--arms=[b]", `arms[0]: a plain value is not allowed: an object with the fields ` + enumerate(namesOf(&Arm{}))},
		{"--arms=a=http://a,b=http://a,c=http://c", "arms: a and b with the same url and headers is not allowed: set " +
			"switch.command or switch.http, which makes an arm serve; or give each arm a url, headers, a model or a " +
			"session of its own"},
		{"--arms=[{name: a, headers: {x-foo: '1'}}, {name: b}] --target-session=header:X-Foo", "target.session: " +
			"header:X-Foo is not allowed: a header that is not in arms[0].headers"},
		{`--arms=a,b --switch-http={url: "http://a", headers: {X: "1\n2"}}`, "switch.http.headers: X (value hidden) is " +
			"not allowed: " + oneLine},
		{"--switch-http={url: 'http://x', body: {a: 1}}", "switch.http.body: a (value hidden) is not " +
			"allowed: a text in quotes as the value"},
		{"--arms=a,b --switch-http=ftp://x", "switch.http.url: ftp://x is not allowed: " + templated},
		{"--arms=a,b --switch-http=http://u:p@x:99999", "switch.http.url: a URL with a user or password is not allowed: " +
			templated},
		{"--arms=a,b --switch-http=http://x:99999", "switch.http.url: http://x:99999 is not allowed: " + templated + "; " +
			"a port is at most 65535"},
		{"--arms=a,b --switch-http=http://{worker}/x", "switch.http.url: {worker} is not allowed: " + braces},
		{"--arms=a,b --switch-command=sh -c ${HOME}/{policy}", "switch.command[2]: {policy} is not allowed: " + braces},
		{"--switch-command=true", `switch.command: ["true"] is not allowed: leave it out without arms, or name the arms (arms)`},
		{
			`--arms=a,b --switch-command=true --cold-http=[{url: "http://x", headers: {X: "{arms}"}}]`,
			"cold.http[0].headers: {arms} is not allowed: " + anyBraces,
		},
		{`--arms=a,b --switch-command=true --cold-http=[{url: "http://x", body: "{policy}"}]`, "cold.http[0].body: " +
			"{policy} is not allowed: " + anyBraces},
		{"--arms=a=http://a,b=http://b --cold-http=[{url: 'http://a', headers: {'x y': z}}]", "cold.http[0].headers: an " +
			"entry (hidden) is not allowed: a list, each " + forms["request_header"].allowed},
		{"--arms=a,b --cold-http=http://x:1", `cold.http: [{"url":"http://x:1"}] is not allowed: leave it out where ` +
			"arms are switched by hand, or set switch.command or switch.http"},
	} {
		args := []string{target}
		for _, flag := range strings.Split(row.flags, " --") {
			args = append(args, "--"+strings.TrimPrefix(flag, "--"))
		}
		source, _, _ := strings.Cut(args[len(args)-1], "=")
		input{args: args}.refused(t, row.want+" (from "+source+")")
	}
}

func TestBadInput(t *testing.T) {
	const (
		helps    = " (see loadgen --help)"
		whole    = " is not allowed: a whole number, 1 to 100000 (from "
		loopback = " is not allowed: without a token, a loopback address such as 127.0.0.1:8088; set a token to listen " +
			"elsewhere (from --listen)"
		twin = "twin.target.url is required: " + urlAllowed + ", since other twin fields are set; with the driver " +
			"endpoints, twin.mode.mode can select one of mode.endpoints instead"
		pair = "_file is required: a PEM file, since "
		both = "_file is set (set both or neither)"
	)
	long := strings.Repeat("x", 201)
	args := func(more ...string) input { return input{args: append([]string{target}, more...)} }
	env := func(more ...string) input { return input{args: []string{target}, env: more} }
	file := func(text string) input { return input{args: []string{target}, file: text} }
	reads := func(name, content string, more ...string) input {
		return input{args: append([]string{target}, more...), files: map[string]string{name: content}}
	}
	for _, row := range []struct {
		in   input
		want string
	}{
		// values
		{input{}, "target.url is required: " + urlAllowed + " (--target-url)"},
		{args("--concurrency", "-1"), "concurrency: -1" + whole + "--concurrency)"},
		{args("--concurrency="), `concurrency: ""` + whole + "--concurrency)"},
		{args("--concurrency"), "concurrency: an empty value" + whole + "--concurrency)"},
		{args("--concurrency", "--start"), "concurrency: an empty value" + whole + "--concurrency)"},
		{file("\nconcurrency: 1.5"), "concurrency: 1.5" + whole + "booth.yaml, line 2)"},
		{args("--target-headers=api-key s3cret"), "target.headers: an entry (hidden) is not allowed: a list, each " +
			"NAME=VALUE, NAME=file:PATH or NAME=env:VARIABLE, " +
			"with the name of an HTTP header; a value with a comma comes from a file or a variable (from --target-headers)"},
		{args("--target-headers=a=1,A=2"), "target.headers: A is not allowed: each header once, in upper or lower case" +
			" (from --target-headers)"},
		{args("--target-headers=X-Request-Id=1"), "target.headers: X-Request-Id is not allowed: leave it out, or set " +
			"target.request_id to off; otherwise the id of the request replaces it (from --target-headers)"},
		{args(`--request-body={"model":"x"}`), `request.body: "{\"model\":\"x\"}" is not allowed: a JSON object without ` +
			"the fields that other settings or the load generator itself set; stream_options may have any but " +
			"include_usage: false (from --request-body)"},
		{args(`--request-body={"stream_options":{"include_usage":false}}`), `request.body: ` +
			`"{\"stream_options\":{\"include_usage\":false}}" is not allowed: a JSON object without the fields that other ` +
			"settings or the load generator itself set; stream_options may have any but include_usage: false " +
			"(from --request-body)"},
		{args("--twin-target-url=http://y/v1/completions"), `twin.target.url: "http://y/v1/completions" is not allowed: ` +
			"the path of the API, http://y/v1, or of its chat completions (from --twin-target-url)"},
		{file("store:\n  max_age: 7d"), "store.max_age: 7d is not allowed: a duration with its unit (ms, s, m or h), " +
			"such as 1h, 1h to 87600h (from booth.yaml, line 2)"},
		{args("--fail-if=ttft_p95 > 600"), "fail_if: \"ttft_p95 > 600\" is not allowed: one of > >= < <= and a " +
			"duration with its unit (ms, s, m or h), such as ttft_p95>600ms (from --fail-if)"},
		{file("slo:\n  ttft: 2h"), "slo.ttft: 2h is not allowed: a duration, more than 0s, up to 1h (from booth.yaml, " +
			"line 2)"},
		{file("start: yes"), "start: yes is not allowed: true or false (from booth.yaml, line 1)"},
		{args("--title=" + long), "title: " + long[:100] + "… is not allowed: " + lineAllowed + " (from --title)"},
		{args("--subtitle=a\tb"), `subtitle: "a\tb" is not allowed: ` + lineAllowed + " (from --subtitle)"},
		{args("--target-url=http://someone:secret@x"), "target.url: a URL with a user or password is not allowed: " +
			urlAllowed + " (from --target-url)"},
		{args("--prometheus-url=http://someone:sec%ret@x"), "prometheus.url: a URL with a user or password is not " +
			"allowed: an http:// or https:// URL with a host, without user, query or fragment (from --prometheus-url)"},

		// contradicting fields
		{args("--max-concurrency=40"), "max_concurrency: 40 is not allowed: at least concurrency (60), or set " +
			"concurrency, too (from --max-concurrency)"},
		{args("--max-concurrency=100", "--slider-max=120"), "slider.max: 120 is not allowed: at most 100 " +
			"(max_concurrency) (from --slider-max)"},
		{args("--data-dir="), `data_dir: "" is not allowed: a path (from --data-dir)`},
		{args("--twin-target-url=http://x:8000/v1"), "twin.target.url: http://x:8000 is not allowed: a different server " +
			"than target.url (from --twin-target-url)"},
		{args("--twin-mode-mode=kv"), twin},
		{env("LOADGEN_TWIN_TARGET_API_KEY=k"), twin},
		{args("--twin-target-url=http://b", "--twin-mode-driver=endpoints"), "twin.mode.endpoints is required: one URL " +
			"per mode with mode.driver endpoints"},
		{args("--twin-target-url=http://b", "--prometheus-url=http://p"), "prometheus.namespace is required: the " +
			"namespace of lane main's cluster, to separate its metrics from those of lane twin"},
		{args("--mode-driver=endpoints"), "mode.endpoints is required: one URL per mode with mode.driver endpoints"},
		{args("--mode-driver=endpoints", "--mode-endpoints=kv=http://a"), "target.url: http://x:8000 is not allowed: one " +
			"of mode.endpoints (kv=http://a) (from --target-url)"},
		{args("--mode-driver=endpoints", "--mode-endpoints=kv=http://x:8000,kv=http://b"), "mode.endpoints: a second " +
			"address for kv is not allowed: one for each mode (from --mode-endpoints)"},
		{args("--arms=a=http://a,=http://b"), "arms[1].name is required: " + api.AllowedArm + " (from --arms)"},
		{args("--mode-driver=command"), "arms is required: " + Arms{}.Allowed() + "; mode.driver command switches them"},
		{file("arms:\n- name: a\n  url: http://a\n  url: http://b\n"), "arms: line 4: mapping key \"url\" already " +
			"defined at line 3 (from booth.yaml, line 2)"},
		{file("arms: {a: http://a}"), `arms: "{\"a\":\"http://a\"}" is not allowed: ` + Arms{}.Allowed() + " (from " +
			"booth.yaml, line 1)"},
		{file("cold: {http: []}"), "cold.http: an empty list is not allowed: at least one request (from booth.yaml, line 1)"},
		{file("switch.command: {a: x}"), `switch.command: "{\"a\":\"x\"}" is not allowed: a program with its ` +
			"arguments (from booth.yaml, line 1)"},
		{file(`switch: {command: ["true", "a\0b"]}`), `switch.command[1]: "a\x00b" is not allowed: a word without the ` +
			`character \x00 (from booth.yaml, line 1)`},
		{args("--corpus-dir=a", "--corpus-file=b"), "corpus.file: a second source is not allowed: set only one of " +
			"corpus.dir, corpus.file and corpus.s3.bucket (from --corpus-file)"},
		{args("--corpus-s3-bucket=texts"), "corpus.s3.endpoint is required: an http:// or https:// URL with a host and " +
			"an optional port only"},
		{env("LOADGEN_CORPUS_S3_ACCESS_KEY=a"), "corpus.s3.secret_key: one key without the other is not allowed: set " +
			"both the access key and the secret key, or neither"},
		{args("--listen=0.0.0.0:8088"), `listen: "0.0.0.0:8088"` + loopback},
		{args("--listen=:8088"), `listen: ":8088"` + loopback},

		// unknown and repeated fields
		{args("--concurency=60"), `unknown flag --concurency, did you mean "--concurrency"?` + helps},
		{args("--token=secret"), `unknown flag --token, did you mean "--token-file"?` + helps},
		{args("benchmark"), "unexpected argument benchmark" + helps},
		{args("capcity"), `unexpected argument capcity, did you mean "capacity"?` + helps},
		{args("--url=http://x"), `unknown flag --url, did you mean "--target-url"?` + helps},
		{args("http://x"), `unexpected argument http://x, did you mean "--target-url"?` + helps},
		{env("LOADGEN_CONCURENCY=60"), "LOADGEN_CONCURENCY: unknown variable; did you mean LOADGEN_CONCURRENCY?"},
		{env("LOADGEN_TOKN=secret"), "LOADGEN_TOKN: unknown variable; did you mean LOADGEN_TOKEN?"},
		{env("LOADGEN_TARGET=http://x"), "LOADGEN_TARGET: unknown variable; did you mean one that begins with " +
			"LOADGEN_TARGET_?"},
		{file("target:\n  urll: http://x"), "target.urll: unknown field; did you mean target.url? (from booth.yaml, line 2)"},
		{file("concurency: 1"), "concurency: unknown field; did you mean concurrency? (from booth.yaml, line 1)"},
		{file("config: other.yaml"), "config: unknown field; see CONFIGURATION.md (from booth.yaml, line 1)"},
		{file("concurrency: 1\nstart: true\nconcurrency: 2"), "concurrency: set twice; first set in line 1 (from " +
			"booth.yaml, line 3)"},
		{file("slo: {ttft: 1s}\nslo.ttft: 2s"), "slo.ttft: set twice; first set in line 1 (from booth.yaml, line 2)"},
		{file("slo: {ttft: 1s}\nslo: {tpot: 1s}"), "slo: set twice; first set in line 1 (from booth.yaml, line 2)"},
		{file("target:\n  api_key: secret"), "target.api_key: secrets are not allowed in this file; set " +
			"LOADGEN_TARGET_API_KEY or target.api_key_file (from booth.yaml, line 2)"},

		// invalid YAML
		{file("concurrency: {min: 1}"), "concurrency: a mapping" + whole + "booth.yaml, line 1)"},
		{file("concurrency: [1]"), "concurrency: a list" + whole + "booth.yaml, line 1)"},
		{file("concurrency:"), "concurrency: an empty value" + whole + "booth.yaml, line 1)"},
		{file("title: &a x\nsubtitle: *a"), "subtitle: an alias is not allowed: " + lineAllowed + " (from booth.yaml, " +
			"line 2)"},
		{file("slo: 600ms"), "slo: a plain value is not allowed: a section of fields (from booth.yaml, line 1)"},
		{file("\"\": x"), "config: an empty key is not allowed: the name of a field (from booth.yaml, line 1)"},
		{file("slo:\n  \"\": x"), "slo: an empty key is not allowed: the name of a field (from booth.yaml, line 2)"},
		{file("? [a]\n: x"), "config: a list as a key is not allowed: the name of a field (from booth.yaml, line 1)"},
		{file("- a"), "config: a list is not allowed: a section of fields (from booth.yaml, line 1)"},
		{file("a: b: c"), "config: booth.yaml is not valid YAML: yaml: mapping values are not allowed in this context"},
		{file("start: true\n---\nstart: false"), "config: booth.yaml is not valid YAML: more than one YAML document"},

		// files and secrets
		{args("--config=none.yaml"), "config: cannot read none.yaml: file does not exist"},
		{args("--token-file=none"), "token_file: cannot read none: file does not exist (from --token-file)"},
		{args("--target-ca-file=none"), "target.ca_file: cannot read none: file does not exist (from --target-ca-file)"},
		{args("--target-headers=a=file:none"), "target.headers: cannot read none: file does not exist" +
			" (from --target-headers)"},
		{reads("two", "x\ny", "--target-headers=a=file:two"), "target.headers: a (value hidden) is not allowed: one line " +
			"of visible ASCII characters and spaces as the value (from --target-headers)"},
		{reads("ca", "no PEM", "--target-ca-file=ca"), "target.ca_file: ca contains no PEM certificates" +
			" (from --target-ca-file)"},
		{args("--target-cert-file=c"), "target.key" + pair + "target.cert" + both},
		{args("--tls-cert-file=c"), "tls_key" + pair + "tls_cert" + both},
		{args("--tls-key-file=k"), "tls_cert" + pair + "tls_key" + both},
		{reads("c", "no PEM", "--tls-cert-file=c", "--tls-key-file=k"), "tls_key_file: cannot read k: file does not " +
			"exist (from --tls-key-file)"},
		{reads("c", "no PEM", "--tls-cert-file=c", "--tls-key-file=c"), "tls_cert_file: c is not allowed: a PEM " +
			"certificate that matches the private key in tls_key_file (failed to find any PEM data in certificate input) " +
			"(from --tls-cert-file)"},
		{reads("t", "\n", "--token-file=t"), "token_file: t is not allowed: a file with the secret on one line; it is " +
			"empty (from --token-file)"},
		{reads("t", "one\ntwo\nand three lines", "--token-file=t"), "token: its value (hidden) is not allowed: " +
			tokenAllowed + " (from t)"},
		{env("LOADGEN_TOKEN=short"), "token: its value (hidden) is not allowed: " + tokenAllowed + " (from LOADGEN_TOKEN)"},
		{
			input{args: []string{target, "--token-file=t"}, env: []string{"LOADGEN_TOKEN=0123456789abcdef"}},
			"token_file: t is not allowed: set either this file or the variable LOADGEN_TOKEN, not both (from --token-file)",
		},
	} {
		row.in.refused(t, row.want)
	}
}

func TestNoDataFolder(t *testing.T) {
	_, _, err := load([]string{target}, nil, io.Discard, nil)
	require.EqualError(t, err, "data_dir is required: a directory; the environment names no user data directory")
	c := input{args: []string{target}, env: []string{"XDG_DATA_HOME=relative"}}.must(t)
	require.NotContains(t, c.DataDir, "relative", "the XDG specification ignores relative paths")
	c = input{args: []string{target, "--data-dir=here"}}.must(t)
	require.Equal(t, "here", c.DataDir)
}

// The real file system, once: a missing file, a folder, and a file that is far too long.
func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "booth.yaml")
	require.NoError(t, os.WriteFile(path, []byte("concurrency: 7\n"), 0o600))
	c, _, err := Load([]string{target, "--config", path}, []string{"HOME=/home/someone"}, io.Discard)
	require.NoError(t, err)
	require.Equal(t, 7, c.Concurrency)

	require.NoError(t, os.WriteFile(path, bytes.Repeat([]byte("#"), maxFile+1), 0o600))
	_, err = readFile("config", path, "a YAML file")
	require.EqualError(t, err, "config: cannot read "+path+": longer than 1048576 bytes")
	_, err = readFile("config", dir, "a YAML file")
	require.EqualError(t, err, "config: cannot read "+dir+": is a directory")
	_, err = readFile("config", filepath.Join(dir, "none"), "a YAML file")
	require.ErrorContains(t, err, ": no such file or directory")
}

func TestSecretsStayHidden(t *testing.T) {
	const token, key = "0123456789abcdef", "the-key-of-the-target"
	c := input{
		args: []string{target, "--listen=0.0.0.0:8088", "--target-api-key-file=key"},
		env:  []string{"LOADGEN_TOKEN=" + token}, files: map[string]string{"key": key + "\r\n"},
	}.must(t)
	require.Equal(t, token, string(c.Token))
	require.Equal(t, key, string(c.Target.APIKey))

	var shown bytes.Buffer
	fmt.Fprintf(&shown, "%v %+v %#v %s", c, c, c, c.Token)
	require.NoError(t, json.NewEncoder(&shown).Encode(c))
	slog.New(slog.NewJSONHandler(&shown, nil)).Info("configuration", "config", c, "token", c.Token)
	slog.New(slog.NewTextHandler(&shown, nil)).Info("configuration", "config", c, "token", c.Token)
	fmt.Fprint(&shown, c.Map())
	require.NotContains(t, shown.String(), token)
	require.NotContains(t, shown.String(), key)
	require.NotContains(t, c.Map(), "token")
}

// Kubernetes sets these in the pods of a namespace with a service "loadgen".
func TestServiceLinksAreNoTypos(t *testing.T) {
	input{args: []string{target}, env: []string{
		"LOADGEN_SERVICE_HOST=10.0.0.1", "LOADGEN_SERVICE_PORT=8088", "LOADGEN_SERVICE_PORT_HTTP=8088",
		"LOADGEN_PORT=tcp://10.0.0.1:8088", "LOADGEN_PORT_8088_TCP=tcp://10.0.0.1:8088", "LOADGEN_PORT_8088_TCP_PROTO=tcp",
		"LOADGEN_PORT_8088_TCP_PORT=8088", "LOADGEN_PORT_8088_TCP_ADDR=10.0.0.1", "LOADGENERATOR=x",
	}}.must(t)
}

func TestCommands(t *testing.T) {
	for _, row := range []struct {
		want Command
		in   input
	}{
		{Run, input{args: []string{target}}},
		{Run, input{args: []string{"run", target}}},
		{Run, input{args: []string{target, "run"}}},
		{Check, input{args: []string{"check", target}}},
		{Health, input{args: []string{"health", target}}},
		// The version is printed even if the environment and the files are invalid.
		{Version, input{args: []string{"version", "--config=none"}, env: []string{"LOADGEN_TYPO=x"}}},
	} {
		_, command, err := row.in.load()
		require.NoError(t, err)
		require.Equal(t, row.want, command)
	}
}

// The workers' settings for each speculation come from a separate file.
func TestVariants(t *testing.T) {
	in := func(text string) input {
		return input{
			args:  []string{target, "--mode-driver=kubernetes", "--mode-kubernetes-variants-file=variants"},
			files: map[string]string{"variants": text},
		}
	}
	c := in("off:\n  args: [--model-path, llama]\n  env: [{name: K, value: '0'}]\ndraft:\n  args: [--model-path, " +
		"llama, --draft]\n  env: [{name: K, value: '5'}]\n").must(t)
	require.Equal(t, "5", c.Mode.Kubernetes.Variants[api.SpeculationDraft].Env[0].Value)
	require.Equal(t, []string{"--model-path", "llama"}, c.Mode.Kubernetes.Variants[api.SpeculationOff].Args)
	for text, says := range map[string]string{
		"off: {arguments: [x]}": `unknown field "arguments"`,
		"medusa: {}": "mode.kubernetes.variants_file: medusa is not allowed: one of these " +
			"speculations as the key: [off draft eagle3 not_recorded]",
		"off: {}": "off with nothing is not allowed",
		"draft: {args: [x]}\noff: {image: y}": "off with image is not allowed: set the same of image, args and " +
			"variables in every variant",
		"[": "mode.kubernetes.variants_file: variants is not allowed",
	} {
		_, _, err := in(text).load()
		require.ErrorContains(t, err, says)
	}
}

// The help lists the most common settings and the topics, whatever else the command line and the environment contain.
// Each topic lists its settings.
func TestHelp(t *testing.T) {
	fields := newModel(Config{}, io.Discard).fields
	help := func(args ...string) string {
		var out bytes.Buffer
		c, command, err := Load(args, []string{"LOADGEN_TYPO=x"}, &out)
		require.NoError(t, err)
		require.Nil(t, c)
		require.Equal(t, Help, command)
		for line := range strings.Lines(out.String()) {
			require.LessOrEqual(t, len([]rune(line)), 111, line)
		}
		return strings.ReplaceAll(out.String(), "[no-]", "")
	}
	lists := func(t *testing.T, text string, listed func(field) bool) {
		for _, f := range fields {
			require.Equal(t, listed(f), regexp.MustCompile(`(?m)^  --`+f.flag.Name+`\b[^-]`).MatchString(text), f.name)
		}
	}
	for _, args := range []string{"help", "--help", "-h", "run --help", "--help --config=none"} {
		text := help(strings.Fields(args)...)
		require.LessOrEqual(t, strings.Count(text, "\n"), 40, "it fits a screen")
		require.Contains(t, text, "\n  capacity ", "a command")
		require.Contains(t, text, " corpus ", "a topic")
	}
	lists(t, help("help", usual), func(f field) bool { return f.flag.Tag.Has("basic") })
	for _, command := range newModel(Config{}, io.Discard).kong.Model.Children {
		text := help(command.Name, "--help")
		require.LessOrEqual(t, strings.Count(text, "\n"), 40, command.Name)
		require.Regexp(t, `^Usage: loadgen .*\n\n(.*\n){0,5}  loadgen (`+command.Name+`|check)`, text)
		for _, flag := range command.Flags {
			require.Contains(t, text, "-"+flag.Name, "[no-]")
		}
	}
	for _, topic := range topics {
		lists(t, help("help", topicOf(&kong.Flag{Group: &topic})), func(f field) bool {
			return topicOf(f.flag) == topicOf(&kong.Flag{Group: &topic})
		})
	}
	lists(t, help("help", every), func(field) bool { return true })
}

// An accepted file is consistent, and its own text parses to the same configuration.
func FuzzYAML(f *testing.F) {
	f.Add([]byte("target: {url: http://x/v1}\nconcurrency: 5\nhosts: [a, b]"))
	f.Add([]byte("preset: recorded\nturns:\n  min: 2\nslo.ttft: 1s"))
	f.Add([]byte("target: &a\n  url: http://[::1]:1/%41/v1/\nslo: *a"))
	f.Add([]byte("title: \"\\u00e9, \\\"x\\\"\"\nmode: {offers: [kv/eagle3], speculation: eagle3}"))
	f.Add([]byte("\"\": x"))
	f.Fuzz(func(t *testing.T, data []byte) {
		read := func(string, string, string) ([]byte, error) { return data, nil }
		args := []string{"--config=booth.yaml", target}
		c, _, err := load(args, []string{"HOME=/home/someone"}, io.Discard, read)
		if err != nil {
			if field := new(api.FieldError); !errors.As(err, &field) || field.Field == "" || field.Allowed == "" {
				t.Fatalf("not a field's error: %v", err)
			}
			return
		}
		if err := c.Check(); err != nil {
			t.Fatalf("accepted, and yet: %v", err)
		}
		again := make([]string, 0, 64)
		for name, value := range c.Map() {
			if name != "config" {
				again = append(again, "--"+strings.NewReplacer(".", "-", "_", "-").Replace(name)+"="+value)
			}
		}
		second, _, err := load(again, nil, io.Discard, read)
		if err != nil {
			t.Fatalf("its own text is refused: %v", err)
		}
		second.File = c.File
		if a, b := fmt.Sprint(c.Map()), fmt.Sprint(second.Map()); a != b {
			t.Fatalf("its own text gives another one:\n%s\n%s", a, b)
		}
	})
}

// Configured settings of the stack are reported unchanged. Missing ones are unknown.
func TestDeploymentSettings(t *testing.T) {
	require.Zero(t, Deployment{}.API())
	conf := input{args: []string{
		target, "--deployment-dynamo=1.6.1", "--deployment-kubernetes=1.34", "--deployment-worker-image=a/b:1",
		"--deployment-serving=aggregated", "--deployment-block-size=32", "--deployment-max-batch-size=64",
		"--deployment-max-num-tokens=16384", "--deployment-chunked-prefill=true", "--deployment-overlap-scheduler=false",
		"--deployment-kv-cache-dtype=fp8", "--deployment-free-gpu-memory-fraction=0.9",
	}}.must(t)
	require.Equal(t, api.Deployment{
		Dynamo: "1.6.1", Kubernetes: "1.34", WorkerImage: "a/b:1", Serving: "aggregated", BlockSize: 32,
		MaxBatchSize: 64, MaxNumTokens: 16384, ChunkedPrefill: new(true), OverlapScheduler: new(false),
		KVCacheDtype: "fp8", FreeGPUMemoryFraction: 0.9,
	}, conf.Deployment.API())
}

// The fields of requests have one text, whatever their original order. Different fields have different texts.
func TestTextOfARequest(t *testing.T) {
	require.Empty(t, Request{}.Text())
	require.Equal(t, `{"a":1,"ignore_eos":true,"min_tokens":5}`, Request{IgnoreEOS: "true", MinTokens: 5, Body: `{ "a": 1 }`}.Text())
	long := func(end string) string { return Request{Body: `{"a":"` + strings.Repeat("x", 200) + end + `"}`}.Text() }
	require.NotEqual(t, long("y"), long("z"))
	require.Less(t, len(long("y")), 200)
}

// A lower max_concurrency lowers the defaults that it limits.
func TestDefaultsFitMaxConcurrency(t *testing.T) {
	for flags, want := range map[string][4]int{ // concurrency, and the slider's minimum, maximum and increment
		"run --max-concurrency=100":                 {60, 60, 100, 10},
		"run --max-concurrency=40 --concurrency=20": {20, 1, 40, 10},
		"run --max-concurrency=65":                  {60, 60, 65, 5},
		"sweep --max-concurrency=40 --levels=10":    {40, 1, 40, 10},
		"run --max-concurrency=40 --rate=2/s":       {60, 1, 40, 10},
	} {
		c := input{args: append(strings.Fields(flags), target)}.must(t)
		require.Equal(t, want, [4]int{c.Concurrency, c.Slider.Min, c.Slider.Max, c.Slider.Increment}, flags)
	}
}
