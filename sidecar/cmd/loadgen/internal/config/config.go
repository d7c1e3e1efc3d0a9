// Package config is the configuration of the load generator: one table of
// fields, read from flags, environment variables and a YAML file.
//
// The table is [Config] itself. The name of a field in the file follows from its
// place in the struct (target.connect_timeout), flag and variable follow from
// that name (--target-connect-timeout, LOADGEN_TARGET_CONNECT_TIMEOUT), and its
// tags hold default, range and help. Precedence: flag, variable, file, preset,
// default. Whatever the source, a value goes through the same checks.
package config

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"reflect"
	"slices"
	"strings"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/chat"
	"kvbooth/sidecar/loadgen/cluster"
	"kvbooth/sidecar/loadgen/cluster/kubernetes"
	"kvbooth/sidecar/loadgen/members"
	"kvbooth/sidecar/loadgen/report"
	"kvbooth/sidecar/loadgen/workload"
	"kvbooth/sidecar/trace"
)

// Config is a configuration in force. It is read by [Load] and does not change.
//
// Of the tags, default, group, help, name, negatable, placeholder and prefix are
// kong's; alias is a second flag, and earlier the name that a field had before,
// which is read, too. min and max (inclusive), oneof, pattern and form say what is
// allowed where neither [api.Limits] nor the type does.
type Config struct {
	File string `name:"config" group:"file" basic:"" form:"path" placeholder:"FILE" help:"YAML configuration file."`

	Target Target `embed:"" prefix:"target." group:"target"`

	Deployment Deployment `embed:"" prefix:"deployment." group:"deployment"`

	Workload `embed:"" group:"workload"`
	End      `embed:"" group:"end"`

	Corpus Corpus `embed:"" prefix:"corpus." group:"corpus"`

	Mode Mode `embed:"" prefix:"mode." group:"mode"`

	Arms   Arms   `basic:"" placeholder:"NAME=URL,…" group:"arms" help:"Ways of serving to compare, such as two routers. Default of url: target.url; mode names the recorded results to compare with."`
	Switch Switch `embed:"" prefix:"switch." group:"arms"`
	Cold   Cold   `embed:"" prefix:"cold." group:"arms"`

	Prometheus Prometheus `embed:"" prefix:"prometheus." group:"metrics"`
	Cluster    Cluster    `embed:"" prefix:"cluster." group:"metrics"`

	Twin Twin `embed:"" prefix:"twin." group:"twin"`

	SLO      SLO    `embed:"" prefix:"slo." group:"screens"`
	Slider   Slider `embed:"" prefix:"slider." group:"screens"`
	Baseline string `name:"default_baseline" earlier:"baseline.default" group:"screens" placeholder:"NAME" help:"Baseline to compare with. Default: the one for this deployment, else this target's own results."`
	Title    string `default:"KV Booth" group:"screens" help:"Title of the display."`
	Subtitle string `default:"KV-cache-aware routing against round-robin, live beside recorded results" group:"screens" help:"Line below the title."`
	Vendor   string `default:"neutral" oneof:"neutral digitalocean" group:"screens" help:"Platform that the guide and the architecture page describe: neutral fits any cluster; digitalocean is that of the recorded results."`

	Listen           string   `basic:"" default:"127.0.0.1:8088" form:"address" placeholder:"HOST:PORT" group:"access" help:"Listen address for API, web page and metrics. Anything but loopback needs a token."`
	Token            Secret   `kong:"-"`
	TokenFile        string   `basic:"" form:"path" placeholder:"FILE" group:"access" help:"File with the access token, required for everything except /healthz, /readyz and /metrics. Or set LOADGEN_TOKEN."`
	MetricsToken     Secret   `kong:"-"`
	MetricsTokenFile string   `form:"path" placeholder:"FILE" group:"access" help:"File with a token for /metrics, which is otherwise open. It is valid for /metrics only; token works there, too. Or set LOADGEN_METRICS_TOKEN."`
	Hosts            []string `form:"host" placeholder:"NAME" group:"access" help:"Host names, besides loopback, that browsers may use to reach it."`
	PublicPage       bool     `negatable:"" group:"access" help:"Serve the read-only page without a token."`

	TLSCertFile string `form:"path" placeholder:"FILE" group:"access" help:"PEM file with the certificate for HTTPS, followed by its intermediates. Requires tls_key_file. Reloaded when it changes."`
	TLSKeyFile  string `form:"path" placeholder:"FILE" group:"access" help:"PEM file with the certificate's private key."`

	Members Members `embed:"" prefix:"members." group:"members"`

	Whatif  Whatif  `embed:"" prefix:"whatif." group:"whatif"`
	Routers Routers `embed:"" prefix:"shadow." group:"routers"`

	DataDir string `basic:"" form:"path" placeholder:"DIR" group:"data" help:"Directory for the database. Default: kvbooth in the user's data directory."`
	Store   Store  `embed:"" prefix:"store." group:"data"`
	Log     Log    `embed:"" prefix:"log." group:"data"`

	Sweep   *Sweep   `kong:"-"` // of the commands trial, sweep and capacity alone
	Compare *Compare `kong:"-"` // of the command compare alone
	Shadow  *Shadow  `kong:"-"` // of the command shadow alone
	Trace   *Trace   `kong:"-"` // of the command trace alone
	Record  *Record  `kong:"-"` // of the command record alone
	Probe   *Probe   `kong:"-"` // of the command probe-router alone
	Why     *Why     `kong:"-"` // of the command why alone
	History *History `kong:"-"` // of the command history alone
	Churn   *Churn   `kong:"-"` // of the command churn alone
	Replay  string   `kong:"-"` // the file, of the command replay alone

	LevelGiven   bool `kong:"-"` // a source sets concurrency or rate
	NameGiven    bool `kong:"-"` // a source sets name
	ByHand       bool `kong:"-"` // a person switches the modes, and no source says so
	CheckCluster bool `kong:"-"` // of the command check alone: look at the cluster, too
	CheckTarget  bool `kong:"-"` // of the command check alone: ask the server for an answer, too
	Member       bool `kong:"-"` // of the command member alone: everything but access is the coordinator's
}

// Target is the server under load, with the settings of its connections.
type Target struct {
	Server        `embed:""`
	chat.Settings `embed:""`
}

// Server is a server that turns go to: the target, or that of an [Arm], whose empty fields are the target's.
type Server struct {
	URL        string `json:"url,omitempty" basic:"" form:"target" placeholder:"URL" help:"OpenAI-compatible server. Without a path, /v1 is added; a path is used as it is, and a query is kept."`
	Model      string `json:"model,omitempty" basic:"" alias:"model" placeholder:"NAME" help:"Model to request. Default: the first one in /v1/models."`
	APIKey     Secret `json:"-" kong:"-"`
	APIKeyFile string `json:"api_key_file,omitempty" basic:"" form:"path" placeholder:"FILE" help:"File with the server's API key. Or set LOADGEN_TARGET_API_KEY."`

	chat.Routing `embed:""`
	Access       `embed:""`
}

// Access is what requests to a server contain besides an API key.
type Access struct {
	Headers  []string `json:"headers,omitempty" form:"header" placeholder:"NAME=VALUE" help:"Headers to send to it. A value from a file or a variable is never shown."`
	CAFile   string   `json:"ca_file,omitempty" form:"path" placeholder:"FILE" help:"PEM file with the CA certificates to verify it."`
	CertFile string   `json:"cert_file,omitempty" form:"path" placeholder:"FILE" help:"PEM file with the client certificate to present to it, followed by its intermediates. Requires key_file."`
	KeyFile  string   `json:"key_file,omitempty" form:"path" placeholder:"FILE" help:"PEM file with the private key of the client certificate."`

	Opened chat.Access `json:"-" kong:"-"` // the content of all of them
}

// Deployment describes the server under load. Empty and 0 mean not known.
type Deployment struct {
	Kind           string `oneof:"real simulated mocked" help:"What is behind the target: real engines, the simulated cluster, or mocked engines. mode.driver simulated sets it automatically."`
	Engine         string `placeholder:"NAME" help:"Inference engine, such as TensorRT-LLM, vLLM or SGLang."`
	Model          string `placeholder:"NAME" help:"Model name as used in the recorded results."`
	GPU            string `placeholder:"NAME" help:"GPU type, such as H200."`
	Workers        int    `default:"0" min:"0" max:"1024" help:"Number of workers."`
	TensorParallel int    `default:"0" min:"0" max:"1024" help:"GPUs per worker (tensor parallelism)."`

	Dynamo                string  `placeholder:"VERSION" help:"NVIDIA Dynamo version."`
	Kubernetes            string  `placeholder:"VERSION" help:"Kubernetes version."`
	WorkerImage           string  `placeholder:"IMAGE" help:"Container image of the workers."`
	Serving               string  `oneof:"aggregated disaggregated" help:"Whether prefill and decode run on the same workers."`
	BlockSize             int     `default:"0" min:"0" max:"1000000" help:"Tokens per KV cache block."`
	MaxBatchSize          int     `default:"0" min:"0" max:"1000000" help:"Maximum sequences per worker iteration."`
	MaxNumTokens          int     `default:"0" min:"0" max:"1000000" help:"Maximum tokens per worker iteration."`
	ChunkedPrefill        string  `oneof:"true false" help:"Whether chunked prefill is enabled."`
	OverlapScheduler      string  `oneof:"true false" help:"Whether the engine's overlap scheduler is enabled."`
	KVCacheDtype          string  `placeholder:"TYPE" help:"Data type of the KV cache, such as fp8."`
	FreeGPUMemoryFraction float64 `default:"0" min:"0" max:"1" help:"Fraction of free GPU memory used for the KV cache."`
	GPUHour               float64 `default:"0" min:"0" max:"10000" placeholder:"DOLLARS" help:"Price of an hour of one GPU in dollars. GPUs are those of the workers in DCGM's metrics, else workers times tensor_parallel."`
}

// Workload describes the conversations.
type Workload struct {
	Concurrency       int       `basic:""`
	Rate              api.Rates `basic:"" placeholder:"RATE/s" help:"Conversations that begin in a second, whatever the server does, in place of concurrency. A ramp then stays at its last rate; steps then end, unless duration is set."`
	workload.Settings `embed:""`

	Start          bool     `basic:"" negatable:"" help:"Start the load immediately instead of waiting for an operator."`
	MaxConcurrency int      `default:"1000" help:"Upper limit for concurrency."`
	Preset         string   `basic:"" oneof:"recorded demo" help:"Workload to start from: that of the recorded results, or demo, with follow-up questions about the answers, for simulated and mocked targets."`
	Seed           uint64   `default:"1" help:"Random seed: the same seed gives the same conversations."`
	OpeningTokens  *int     `placeholder:"N" help:"Default: 3500 to 4000, as recorded. If set, results with another opening length are shown, but not rated better or worse."`
	Traffic        Traffic  `embed:""`
	Request        Request  `embed:"" prefix:"request."`
	Followup       Followup `embed:"" prefix:"followup."`
}

// Traffic is recorded traffic that runs in place of conversations about texts.
type Traffic struct {
	Files            []string      `name:"trace" basic:"" form:"path" placeholder:"FILE" help:"Files of one trace or dataset to run, or patterns such as 'trace.*.jsonl.gz'; may be gzipped. The form is recognized by content (see loadgen help trace). With times, the default level is the rate of the trace, and another rate is another speed. A run starts at once and ends with the trace, unless it loops."`
	TraceSpeed       float64       `default:"1" min:"0.001" max:"1000" placeholder:"X" help:"Speed of the trace as a multiple of the recorded speed, of arrivals and of pauses within a session."`
	TraceFrom        time.Duration `default:"0s" min:"0s" max:"87600h" help:"Use only requests from this time of the trace on."`
	TraceTo          time.Duration `default:"0s" min:"0s" max:"87600h" help:"Use only requests before this time of the trace; 0s: up to its end."`
	TraceSessions    float64       `default:"0" min:"0" max:"1" help:"Use this share of the trace's sessions, each with all of its turns, such as 0.1; 0: all. Which ones depends on the seed."`
	TraceLoop        bool          `negatable:"" help:"Begin the trace anew at its end, with other prompts that share what those of the trace share."`
	TraceSkipInvalid bool          `negatable:"" help:"Skip lines of the trace that cannot be used, and count them, instead of refusing the trace."`
	TraceBlockTokens int           `default:"0" min:"0" max:"65536" help:"Tokens per block in a trace that does not include it, or of a dataset's texts; 0: inferred from the trace, 16 for texts."`
	TraceTimeUnit    string        `oneof:"s ms us ns" help:"Unit of numeric times in the trace. Empty: inferred from the trace; s for BurstGPT, ms for datasets."`
}

// Selection returns the selected part of a trace.
func (t *Traffic) Selection(seed uint64) trace.Selection {
	return trace.Selection{From: t.TraceFrom, To: t.TraceTo, Share: t.TraceSessions, Seed: seed, Speed: t.TraceSpeed}
}

// Planned reports whether the traffic is planned, in place of conversations about texts.
func (c *Config) Planned() bool { return len(c.Traffic.Files) > 0 || !c.TrafficShape.Recorded() }

// Ends reports whether a run ends by itself.
func (c *Config) Ends() bool {
	return c.Duration > 0 || c.Requests > 0 || len(c.Traffic.Files) > 0 && !c.Traffic.TraceLoop && c.Sweep == nil
}

// End configures when a run ends by itself, when it counts as failed, and the files that it writes.
type End struct {
	Duration   time.Duration      `basic:"" default:"0s" min:"0s" max:"8760h" help:"Run for this long, then print a summary and exit. Starts immediately, as with start. 0s: run until stopped."`
	Warmup     time.Duration      `basic:"" default:"0s" min:"0s" max:"24h" help:"Time before duration, requests or a trace whose turns count in no figure of the run."`
	Requests   int                `default:"0" min:"0" max:"1000000000" help:"Send this many turns, wait for their ends, then print a summary and exit. Starts immediately, as with start. 0: no limit."`
	Grace      time.Duration      `default:"30s" min:"0s" max:"24h" help:"How long turns in flight may take to end after duration or requests. Others are cut, and count as at least as long as they took."`
	AbortAfter time.Duration      `default:"30s" min:"0s" max:"24h" help:"End a run with an end as failed once turns have failed and none has succeeded for this long. 0s: never."`
	Caches     string             `default:"auto" oneof:"auto fresh kept cold warm" help:"What caches hold. Of a run with an end: fresh (auto) begins its texts with a nonce, so that a second run is the same measurement; kept has what earlier runs left. Of a trial: cold begins every span on cold caches; warm changes the arm every minute or so within one run, which takes fewer minutes; auto is warm where that restarts nothing and the arms share their workers."`
	FailIf     []report.Condition `basic:"" name:"fail_if" placeholder:"CONDITION" help:"Conditions that fail the run (exit code 3), such as ttft_p95>600ms, error_rate>1% or verdict=bottleneck. A sign before the number compares with against: ttft_p95>+5%, throughput<-3%, kv_hit<-3% (3 points). Quote them in a shell."`
	Against    string             `basic:"" form:"path" placeholder:"FILE" help:"Result that relative conditions of fail_if compare with, of the same level and mode: the JSON of a run, a JSON report, a baseline's file or name, or accepted (the last accepted run of this name). Several, separated by commas, show how far runs scatter."`
	NotCertain string             `default:"pass" oneof:"pass fail" help:"Whether a run passes or fails (exit code 3) where a relative condition is not certain: pass fails only runs that are certainly worse; fail passes only runs that are certainly not."`
	Name       string             `default:"run" form:"result_name" placeholder:"NAME" help:"Name of the run, trial, sweep or search in the history. Those of one name that measure the same are compared."`
	Labels     []string           `name:"label" form:"label" placeholder:"NAME=VALUE" help:"Labels of it in the history, such as commit=3f2c1a0."`
	Output     []string           `basic:"" form:"output" placeholder:"FILE" help:"Files to write at the end. Of a run: summary (.json, .html), turns (.csv), figures over time (series.csv) and for Prometheus (.prom), conditions as JUnit (.xml). Of trial, sweep, capacity, compare: .json, .tsv, .md, .html; of compare also .xml. Of shadow: .json, .csv, .md, .html. Of trace: .json, or json for standard output. Of record: the traffic as a trace (.jsonl). configmap:NAME/FILE is a key of a ConfigMap, at most 1 MiB."`
}

// Request has fields that are added to every request of a turn. Empty and 0 add none.
type Request struct {
	IgnoreEOS   string   `name:"ignore_eos" oneof:"true false" help:"Whether the engine goes on after the end-of-sequence token, so that answers have exactly the drawn length, as vLLM and SGLang can. Empty: not sent."`
	MinTokens   int      `default:"0" min:"0" max:"131072" help:"Minimum tokens per answer, at most those of its limit; 0: not sent."`
	Temperature *float64 `min:"0" max:"2" placeholder:"N" help:"Sampling temperature. Empty: not sent."`
	TopP        *float64 `name:"top_p" min:"0" max:"1" placeholder:"N" help:"Nucleus sampling: share of the probability that tokens are sampled from. Empty: not sent."`
	Seed        *int64   `placeholder:"N" help:"Seed of the engine's sampling. Empty: not sent."`
	Priority    *int32   `min:"-2147483648" max:"2147483647" placeholder:"N" help:"Priority of the requests at a Dynamo, sent as nvext.agent_hints.priority. Empty: not sent."`
	Body        string   `form:"body" placeholder:"JSON" help:"Further fields of the request's body, as a JSON object."`
}

// Fields returns the further fields of a request's body, by name; nil where there are none.
func (r Request) Fields() map[string]any {
	fields := map[string]any{}
	_ = json.Unmarshal([]byte(r.Body), &fields) // of the form, or empty
	for name, value := range map[string]string{
		"ignore_eos": r.IgnoreEOS, "temperature": text(r.Temperature), "top_p": text(r.TopP), "seed": text(r.Seed),
	} {
		if value != "" {
			fields[name] = json.RawMessage(value)
		}
	}
	if len(fields) == 0 {
		return nil
	}
	return fields
}

// PriorityText returns the priority as text, empty without one.
func (r Request) PriorityText() string { return text(r.Priority) }

func text(v any) string { return format(reflect.ValueOf(v)) }

// maxRequestText is the number of characters of the fields that are shown.
const maxRequestText = 150

// Text returns the fields as JSON in one line, for the shape of a workload. A long text is cut and ends with a
// checksum. Empty: there are none.
func (r Request) Text() string {
	fields := r.Fields()
	if fields == nil {
		fields = map[string]any{}
	}
	if r.MinTokens > 0 {
		fields["min_tokens"] = r.MinTokens
	}
	if r.Priority != nil {
		fields["nvext"] = map[string]any{"agent_hints": map[string]any{"priority": *r.Priority}}
	}
	if len(fields) == 0 {
		return ""
	}
	text, err := json.Marshal(fields)
	if err != nil { // each has its form
		return ""
	}
	if all := []rune(string(text)); len(all) > maxRequestText {
		return fmt.Sprintf("%s… (%08x)", string(all[:maxRequestText]), crc32.ChecksumIEEE(text))
	}
	return string(text)
}

// Followup configures the source of the questions after the first turn.
type Followup struct {
	Text       string `placeholder:"TEXT" help:"Fixed follow-up question. Default: the model at followup.url, or the built-in questioner, asks about the last answer."`
	URL        string `form:"target" placeholder:"URL" help:"OpenAI-compatible server whose model plays the end user, as target.url. If it fails, the built-in questioner takes over."`
	Model      string `placeholder:"NAME" help:"Model that plays the end user. Default: the first one in that server's /v1/models."`
	APIKey     Secret `kong:"-"`
	APIKeyFile string `form:"path" placeholder:"FILE" help:"File with that server's API key. Or set LOADGEN_FOLLOWUP_API_KEY."`
	Access     `embed:""`
	Timeout    time.Duration `default:"10s" min:"100ms" max:"2m" help:"Timeout for a question from that model, including retries."`
}

// Corpus is the source of the texts. Without one, the built-in articles are used.
type Corpus struct {
	Dir     string        `form:"path" placeholder:"DIR" help:"Directory of .jsonl, .json, .md and .txt files. The built-in articles are used unless this, corpus.file or corpus.s3.bucket is set."`
	File    string        `form:"path" placeholder:"FILE" help:"A single such file: for example JSONL with id, topic and text, or a question set such as MT-Bench or ShareGPT."`
	S3      S3            `embed:"" prefix:"s3."`
	Refresh time.Duration `default:"5m" min:"0s" max:"24h" help:"How often to reload the texts; 0: load them once."`
}

// S3 is a bucket of such files.
type S3 struct {
	Endpoint      string `form:"origin" placeholder:"URL" help:"S3-compatible endpoint, such as https://s3.example.org."`
	Bucket        string `pattern:"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$" allowed:"a bucket name of 3 to 63 lower-case letters, digits, dots and hyphens" placeholder:"NAME" help:"Bucket with such files."`
	Prefix        string `placeholder:"TEXT" help:"Read only objects with this key prefix."`
	Region        string `placeholder:"NAME" help:"Region for signing requests. Default: looked up from the service."`
	PathStyle     bool   `default:"true" negatable:"" help:"Put the bucket in the path, not in the host name."`
	CAFile        string `form:"path" placeholder:"FILE" help:"PEM file with the CA certificates to verify the service."`
	CA            []byte `kong:"-"` // content of CAFile
	AccessKey     Secret `kong:"-"`
	AccessKeyFile string `form:"path" placeholder:"FILE" help:"File with the access key; without one, access is anonymous. Or set LOADGEN_CORPUS_S3_ACCESS_KEY."`
	SecretKey     Secret `kong:"-"`
	SecretKeyFile string `form:"path" placeholder:"FILE" help:"File with the secret key. Or set LOADGEN_CORPUS_S3_SECRET_KEY."`
}

// Mode is the routing mode at the start, and how it is switched.
type Mode struct {
	Driver      string   `basic:"" default:"manual" oneof:"manual pinned endpoints command http kubernetes simulated" help:"How the mode is switched: manual, by the operator; pinned, round_robin by pinning turns to the workers of a Dynamo in kv or direct mode; endpoints, a URL for each mode; command and http, by switch.command and switch.http, which imply them; kubernetes, by a patch of the DynamoGraphDeployment; simulated, by the simulated cluster's API."`
	Mode        string   `basic:"" default:"unknown" oneof:"kv round_robin least_loaded unknown" help:"Routing mode at start; the drivers kubernetes and simulated read it from the cluster. If unknown, pinned starts with kv if that is on offer, endpoints with the mode at target.url, and manual waits for a Dynamo's metrics or an operator."`
	Speculation string   `default:"not_recorded" oneof:"off draft eagle3 not_recorded" help:"Speculative decoding at start. The driver simulated, and kubernetes with a variants file, replace it with what the cluster reports."`
	Offers      []string `default:"kv,round_robin" form:"offer" placeholder:"MODE" help:"Modes an operator may switch to with the drivers manual and kubernetes. With pinned, round_robin alone is for a Dynamo in direct mode."`
	Endpoints   []string `form:"endpoint" placeholder:"MODE=URL" help:"URL of each mode for the driver endpoints, such as kv=http://kv:8000,round_robin=http://rr:8000. target.url must be one of them; it defaults to the URL of mode.mode."`

	Arm string `group:"arms" placeholder:"NAME" help:"Arm at the start, where each has a url or headers of its own. Default: the first."`

	Kubernetes Kubernetes `embed:"" prefix:"kubernetes."`

	arms   []Arm         `kong:"-"` // of Arms, with their keys
	Served []cluster.Arm `kong:"-"` // what Arms or Endpoints name; nil where the mode has no endpoint of its own
}

// Kubernetes names the DynamoGraphDeployment that the driver kubernetes switches, and how.
type Kubernetes struct {
	Name         string        `placeholder:"NAME" help:"DynamoGraphDeployment to switch. Default, unless a selector is set: the one whose frontend Service target.url points to."`
	Namespace    string        `placeholder:"NAME" help:"Its namespace. Default: the pod's own, or the kubeconfig's."`
	Selector     string        `placeholder:"LABELS" help:"Label selector to find it by instead of its name, such as app=booth."`
	Kubeconfig   string        `form:"path" placeholder:"FILE" help:"Kubeconfig file. Default: the pod's service account, or the kubeconfig that kubectl uses."`
	Context      string        `placeholder:"NAME" help:"Context in the kubeconfig. Default: the current context."`
	Restart      string        `default:"workers" oneof:"workers frontend" help:"What a switch restarts: workers (and the frontend), which empties all caches; or only the frontend, where a nonce makes the prefixes cold."`
	RestartAfter bool          `negatable:"" help:"Restart all pods after a trial, a sweep or a capacity search, even where the mode stays, so that router and caches start anew."`
	Timeout      time.Duration `default:"15m" min:"10s" max:"6h" help:"Timeout for a switch. It is then rolled back; the rollback has the same timeout."`
	VariantsFile string        `form:"path" placeholder:"FILE" help:"YAML file with image, args and env of the workers' main container for each speculation. Without it, speculation is not switched."`

	Variants map[api.Speculation]kubernetes.Variant `kong:"-"` // content of VariantsFile
}

// Prometheus is the server with the cluster's metrics.
type Prometheus struct {
	URL       string `basic:"" form:"url" placeholder:"URL" help:"Prometheus to query for the cluster's metrics. Without it, metrics are scraped from the target itself."`
	Namespace string `placeholder:"NAME" help:"Kubernetes namespace of the cluster, to select its series in that Prometheus."`

	Graph, Beside string `kong:"-"` // two DynamoGraphDeployments in that namespace: the lane's, and the other lane's
}

// Cluster has the addresses of metrics without a Prometheus.
type Cluster struct {
	MetricsURLs []string `name:"metrics_urls" form:"page" placeholder:"URL" help:"Metrics URLs to scrape besides the target's own: workers and DCGM exporters. GPUs are matched to workers by pod, host or order. no-target excludes the target's page, which may be that of one worker; with it alone, workers are those that the turns name."`
	Access      `embed:""`
}

// SLO are the service level objectives for p95.
type SLO struct {
	TTFT time.Duration `basic:"" default:"600ms" help:"Limit for the p95 time to first token."`
	TPOT time.Duration `basic:"" default:"60ms" help:"Limit for the p95 time per output token."`
}

// Slider is the range of the concurrency slider.
type Slider struct {
	Min       int `default:"60" help:"Minimum concurrency on the slider."`
	Max       int `default:"180" help:"Maximum concurrency on the slider."`
	Increment int `default:"10" help:"Step size of the slider."`
}

// Store bounds the database.
type Store struct {
	MaxConversations int           `default:"50000" min:"1" max:"10000000" help:"Maximum conversations to keep; the oldest are deleted first."`
	MaxAge           time.Duration `default:"168h" min:"1h" max:"87600h" help:"Maximum age of stored conversations."`
	MaxBytes         int           `default:"2147483648" min:"0" max:"1099511627776" help:"Maximum size of the database file in bytes, at least 16777216; the oldest conversations are deleted first. 0: no limit."`
}

// Members configures the processes that send turns for this one, and the server that connects them.
type Members struct {
	Count int    `alias:"members" default:"0" min:"0" max:"64" help:"Members to start on this machine, with a NATS server unless members.nats.url is set. 0: this process sends the turns itself."`
	Fleet string `default:"default" pattern:"^[a-z0-9-]{1,32}$" allowed:"1 to 32 lower-case letters, digits and hyphens" placeholder:"NAME" help:"Name that separates several load generators with members on the same NATS server."`
	Name  string `placeholder:"NAME" help:"Display name of this member. Default: the host name."`
	// Listen is only for members: a coordinator uses the load generator's own address.
	Listen string `form:"address" placeholder:"HOST:PORT" help:"Listen address for a member's /metrics and /healthz; it serves nothing else. Anything but loopback needs metrics_token. Default: not served."`
	NATS   NATS   `embed:"" prefix:"nats."`
}

// NATS is the server that connects a coordinator and its members.
type NATS struct {
	URL       string `alias:"join" form:"nats" placeholder:"URL" help:"NATS server, such as nats://127.0.0.1:4222. Anything but loopback needs an NKey, or tls:// with a token."`
	Token     Secret `kong:"-"`
	TokenFile string `form:"path" placeholder:"FILE" help:"File with the server's token. Or set LOADGEN_MEMBERS_NATS_TOKEN."`
	NKeyFile  string `name:"nkey_file" form:"path" placeholder:"FILE" help:"File with the NKey seed for the server."`
	CAFile    string `form:"path" placeholder:"FILE" help:"PEM file with the CA certificates to verify the server."`
	CA        []byte `kong:"-"` // content of CAFile
}

// Coordinates reports whether members send the turns.
func (m Members) Coordinates() bool { return m.Count > 0 || m.NATS.URL != "" }

// Access returns the access to the server.
func (m Members) Access() members.Access {
	return members.Access{
		URL: m.NATS.URL, Token: string(m.NATS.Token), NKeyFile: m.NATS.NKeyFile, CA: m.NATS.CA,
		Fleet: m.Fleet,
	}
}

// Whatif bounds the simulations that answer what-if questions.
type Whatif struct {
	CPUs     int    `name:"cpus" default:"1" min:"0" max:"64" help:"CPU cores a simulation may use, at the lowest priority; 0 disables what-if simulations."`
	Profiles string `form:"path" placeholder:"DIR" help:"Directory of profiles that can be simulated besides the built-in ones, as written by booth calibrate. Default: profiles in data_dir."`
}

// Routers configures whether other routers are simulated on the turns of the router in force.
type Routers struct {
	Enabled  bool `default:"true" negatable:"" help:"Model what each worker's cache would hold under other routers, if the target reports its workers and their cache sizes. A Dynamo's decisions are explained by it."`
	TokenIDs bool `name:"token_ids" default:"true" negatable:"" help:"Request the prompt's token IDs from a Dynamo (nvext annotation token_ids, about 40 kB per turn). Blocks of text, used otherwise, are less accurate."`
}

// Log says what is logged to standard error.
type Log struct {
	Level  string `default:"info" oneof:"debug info warn error" help:"Minimum log level."`
	Format string `default:"text" oneof:"text json" help:"Log format."`
}

// presets are values of fields that no source sets, by the preset's name. They describe the recorded workload: always
// five turns on ten texts, one short sentence at every follow-up, this max_tokens, and at most 25 requests/s.
var presets = map[string]map[string]string{
	"recorded": {
		"turns.min": "5", "turns.max": "5", "openings": "10", "max_tokens": "1024",
		"output_tokens.mean": "0", "followup.text": "elaborate further",
		"target_rps": "25",
	},
	"demo": {"turns.min": "5", "turns.max": "5", "max_tokens": "1024", "target_rps": "25"},
}

// answers are the settings that every preset adds where answers have no end of their own: the lengths of the recorded
// tables, as package closedloop derives them. A real model ends its answers itself, as the recorded one did.
var answers = map[string]string{"output_tokens.mean": "900", "output_tokens.cv": "0.3"}

// endless reports whether answers continue to whatever limit is set.
func (c *Config) endless() bool {
	kind := api.TargetKind(c.Deployment.Kind)
	return c.Preset == "demo" || kind == api.TargetSimulated || kind == api.TargetMocked || c.Mode.Driver == "simulated"
}

// Command is a command of the program.
type Command string

// The commands. Help means that the help has already been printed.
const (
	Run     Command = "run"
	Check   Command = "check"
	Health  Command = "health"
	Version Command = "version"
	Help    Command = "help"

	Trial    Command = "trial"
	Levels   Command = "sweep"
	Capacity Command = "capacity"
	Compared Command = "compare"
	Shadowed Command = "shadow"
	Traced   Command = "trace"
	Recorded Command = "record"
	Replayed Command = "replay"

	Probed Command = "probe-router"
	Asked  Command = "why"
	Listed Command = "history"

	Churned Command = "churn"

	Joined Command = "member"
)

// WorkloadSettings returns the settings with which a lane starts.
func (c *Config) WorkloadSettings() workload.Settings {
	s := c.Workload.Settings
	if s.Level = api.AtConversations(c.Concurrency); len(c.Rate.Levels) > 0 {
		s.Level, s.Ramp = c.Rate.Level(), c.Rate.Ramp()
	}
	return s
}

// OpeningLength returns the length of the opening texts in tokens; 0 leaves them unchanged.
func (c *Config) OpeningLength() int {
	if c.OpeningTokens == nil {
		return 0
	}
	return *c.OpeningTokens
}

// Settings returns the settings that an administrator may change later.
func (c *Config) Settings() api.Settings {
	return api.Settings{
		SLO:             api.SLO{TTFT: c.SLO.TTFT.Seconds(), TPOT: c.SLO.TPOT.Seconds()},
		Slider:          api.Slider(c.Slider),
		MaxConcurrency:  c.MaxConcurrency,
		DefaultBaseline: c.Baseline,
		Title:           c.Title,
		Subtitle:        c.Subtitle,
		Vendor:          api.Vendor(c.Vendor),
	}
}

// API returns the deployment in the form of the API. The speculation is that of the
// mode in force.
func (d Deployment) API() api.Deployment {
	return api.Deployment{
		Kind: api.TargetKind(d.Kind), Engine: d.Engine, Model: d.Model, GPU: d.GPU, Workers: d.Workers,
		TensorParallel: d.TensorParallel,

		Dynamo: d.Dynamo, Kubernetes: d.Kubernetes, WorkerImage: d.WorkerImage, Serving: d.Serving,
		BlockSize: d.BlockSize, MaxBatchSize: d.MaxBatchSize, MaxNumTokens: d.MaxNumTokens,
		ChunkedPrefill: known(d.ChunkedPrefill), OverlapScheduler: known(d.OverlapScheduler),
		KVCacheDtype: d.KVCacheDtype, FreeGPUMemoryFraction: d.FreeGPUMemoryFraction,
		GPUHour: d.GPUHour,
	}
}

// known parses true and false; empty is not known.
func known(text string) *bool {
	if text == "" {
		return nil
	}
	return new(text == "true")
}

// State returns the mode at the start.
func (m Mode) State() api.ModeState {
	return api.ModeState{Arm: m.Arm, Mode: api.Mode(m.Mode), Speculation: api.Speculation(m.Speculation)}
}

// States returns the modes on offer. One without a speculation of its own has that of the start.
func (m Mode) States() []api.ModeState {
	if m.Served != nil {
		states := make([]api.ModeState, len(m.Served))
		for i, a := range m.Served {
			states[i] = a.State
		}
		return states
	}
	states := make([]api.ModeState, len(m.Offers))
	for i, offer := range m.Offers {
		states[i] = m.offered(offer)
	}
	return states
}

// direct reports whether the target is a Dynamo in direct mode: the driver pinned with round_robin alone on offer.
func (m Mode) direct() bool {
	elsewhere := func(s api.ModeState) bool { return s.Mode != api.ModeRoundRobin }
	return m.Driver == "pinned" && len(m.Offers) > 0 && !slices.ContainsFunc(m.States(), elsewhere)
}

// Pinned returns the modes of the driver pinned, which all have the speculation of the start.
func (m Mode) Pinned() (all []api.ModeState) {
	if !m.direct() {
		all = append(all, m.offered(string(api.ModeKV)))
	}
	return append(all, m.offered(string(api.ModeRoundRobin)))
}

// Addresses returns the addresses of the modes, where each has one.
func (m Mode) Addresses() []cluster.Arm {
	if m.Served != nil {
		return m.Served
	}
	all := make([]cluster.Arm, len(m.Endpoints))
	for i, endpoint := range m.Endpoints {
		offer, address, _ := strings.Cut(endpoint, "=")
		all[i] = cluster.Arm{State: m.offered(offer), URL: address, Field: "mode.endpoints"}
	}
	return all
}

// atStart returns the start mode that follows from the driver if the configuration names none.
// The target is empty if it follows from the mode.
func (m Mode) atStart(target string) string {
	switch {
	case m.Mode != string(api.ModeUnknown):
	case m.Driver == "pinned":
		return string(m.Pinned()[0].Mode)
	case m.Driver == "endpoints":
		all := m.Addresses()
		i := slices.IndexFunc(all, func(e cluster.Arm) bool {
			return e.URL == target || target == "" && e.State.Mode == api.ModeKV
		})
		if len(all) > 0 {
			return string(all[max(i, 0)].State.Mode)
		}
	}
	return m.Mode
}

// Address returns the address of the mode at the start, "" where it has none.
func (m Mode) Address() string {
	for _, e := range m.Addresses() {
		if e.State == m.State() {
			return e.URL
		}
	}
	return ""
}

// offered parses one offer, which has already been checked.
func (m Mode) offered(offer string) api.ModeState {
	mode, speculation, found := strings.Cut(offer, "/")
	if !found {
		speculation = m.Speculation
	}
	return api.ModeState{Mode: api.Mode(mode), Speculation: api.Speculation(speculation)}
}
