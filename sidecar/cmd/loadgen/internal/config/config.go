// Package config is the configuration of the load generator: one table of
// fields, read from flags, environment variables and a YAML file.
//
// The table is [Config] itself. The name of a field in the file follows from its
// place in the struct (target.connect_timeout), flag and variable follow from
// that name (--target-connect-timeout, LOADGEN_TARGET_CONNECT_TIMEOUT), and its
// tags hold default, range and help. A flag counts more than a variable, that
// more than the file, the file more than a preset, and a preset more than the
// default. Whatever the source, a value goes through the same checks.
package config

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/cmd/loadgen/internal/report"
	"kvbooth/sidecar/loadgen/cluster"
	"kvbooth/sidecar/loadgen/kubernetes"
	"kvbooth/sidecar/loadgen/workload"
)

// Config is a configuration in force. It is read by [Load] and does not change.
//
// Of the tags, aliases, default, group, help, name, negatable, placeholder and
// prefix are kong's; min and max (inclusive), oneof and form say what is allowed
// where [api.Limits] does not.
type Config struct {
	File string `name:"config" form:"path" placeholder:"FILE" help:"The YAML file to read."`

	Target Target `embed:"" prefix:"target." group:"Target, the server under load"`

	Deployment Deployment `embed:"" prefix:"deployment." group:"Deployment, what serves there (shown, and compared with a baseline's)"`

	Workload `embed:"" group:"Workload"`
	End      `embed:"" group:"End of the run, and what is left of it"`

	Corpus Corpus `embed:"" prefix:"corpus." group:"Corpus, the texts that conversations begin with"`

	Mode Mode `embed:"" prefix:"mode." group:"Routing mode"`

	Prometheus Prometheus `embed:"" prefix:"prometheus." group:"Metrics of the cluster"`
	Cluster    Cluster    `embed:"" prefix:"cluster." group:"Metrics of the cluster"`

	Twin Twin `embed:"" prefix:"twin." group:"Twin, a second target with the same conversations"`

	SLO      SLO      `embed:"" prefix:"slo." group:"Screens"`
	Slider   Slider   `embed:"" prefix:"slider." group:"Screens"`
	Baseline Baseline `embed:"" prefix:"baseline." group:"Screens"`
	Title    string   `default:"KV Booth" group:"Screens" help:"Title of the display."`
	Subtitle string   `default:"KV-cache-aware routing against round-robin, live beside recorded results" group:"Screens" help:"Line below the title."`
	Vendor   string   `default:"neutral" oneof:"neutral digitalocean" group:"Screens" help:"Whose platform the guide and the architecture page speak of: neutral is true of any cluster, digitalocean is the recorded deployment's."`

	Listen           string   `default:"127.0.0.1:8088" form:"address" placeholder:"HOST:PORT" group:"Access" help:"Address of API, page and metrics. Other addresses than loopback need a token."`
	Token            Secret   `kong:"-"`
	TokenFile        string   `form:"path" placeholder:"FILE" group:"Access" help:"File that holds the token which all calls but /healthz, /readyz and /metrics need. LOADGEN_TOKEN gives it instead."`
	MetricsToken     Secret   `kong:"-"`
	MetricsTokenFile string   `form:"path" placeholder:"FILE" group:"Access" help:"File that holds a token for /metrics, which is open without one. It opens nothing else; token opens /metrics, too. LOADGEN_METRICS_TOKEN gives it instead."`
	Hosts            []string `form:"host" placeholder:"NAME" group:"Access" help:"Host names, besides loopback, under which browsers may reach it."`
	PublicPage       bool     `negatable:"" group:"Access" help:"Show the read-only page without a token."`

	TLSCertFile string `form:"path" placeholder:"FILE" group:"Access" help:"PEM file of the certificate to serve HTTPS with, its issuers' behind it. Needs tls_key_file. Read again when it changes."`
	TLSKeyFile  string `form:"path" placeholder:"FILE" group:"Access" help:"PEM file of that certificate's private key."`

	Whatif  Whatif  `embed:"" prefix:"whatif." group:"What-if simulations"`
	Routers Routers `embed:"" prefix:"shadow." group:"Shadow, other routers on the same turns"`

	DataDir string `form:"path" placeholder:"DIR" group:"Data and log" help:"Folder of the database. Without it, kvbooth in the user's data folder."`
	Store   Store  `embed:"" prefix:"store." group:"Data and log"`
	Log     Log    `embed:"" prefix:"log." group:"Data and log"`

	Sweep   *Sweep   `kong:"-"` // of the commands trial, sweep and capacity alone
	Compare *Compare `kong:"-"` // of the command compare alone
	Shadow  *Shadow  `kong:"-"` // of the command shadow alone

	CheckCluster bool `kong:"-"` // of the command check alone: look at the cluster, too
}

// Target is the server under load, and how long to wait for it.
type Target struct {
	URL        string `form:"target" placeholder:"URL" help:"OpenAI-compatible server, with or without /v1."`
	Model      string `aliases:"model" placeholder:"NAME" help:"Model to ask for. Without it, the first of /v1/models."`
	APIKey     Secret `kong:"-"`
	APIKeyFile string `form:"path" placeholder:"FILE" help:"File that holds the server's API key. LOADGEN_TARGET_API_KEY gives it instead."`
	CAFile     string `form:"path" placeholder:"FILE" help:"PEM file of the authorities that may sign the server's certificate."`
	CA         []byte `kong:"-"` // content of CAFile

	ConnectTimeout    time.Duration `default:"5s" min:"100ms" max:"5m" help:"Longest wait for a connection."`
	FirstTokenTimeout time.Duration `default:"120s" min:"100ms" max:"1h" help:"Longest wait for the first token of an answer."`
	StallTimeout      time.Duration `default:"30s" min:"100ms" max:"1h" help:"Longest silence in the middle of an answer."`
	TurnTimeout       time.Duration `default:"10m" min:"100ms" max:"24h" help:"Longest time that a whole answer may take."`
}

// Deployment says what serves. Empty and 0 mean not known.
type Deployment struct {
	Kind           string `oneof:"real simulated mocked" help:"What is behind the target: real engines, the simulated cluster, or mocked engines. Empty is not known; the driver simulated knows by itself."`
	Engine         string `placeholder:"NAME" help:"Inference engine, such as TensorRT-LLM, vLLM or SGLang."`
	Model          string `placeholder:"NAME" help:"Model as the recorded results name it."`
	GPU            string `placeholder:"NAME" help:"GPU type, such as H200."`
	Workers        int    `default:"0" min:"0" max:"1024" help:"Number of workers; 0 is not known."`
	TensorParallel int    `default:"0" min:"0" max:"1024" help:"GPUs a worker is spread over; 0 is not known."`

	Dynamo                string  `placeholder:"VERSION" help:"Version of NVIDIA Dynamo."`
	Kubernetes            string  `placeholder:"VERSION" help:"Version of Kubernetes."`
	WorkerImage           string  `placeholder:"IMAGE" help:"Container image of a worker."`
	Serving               string  `oneof:"aggregated disaggregated" help:"Whether the same workers prefill and decode. Empty is not known."`
	BlockSize             int     `default:"0" min:"0" max:"1000000" help:"Tokens of a block of the KV cache; 0 is not known."`
	MaxBatchSize          int     `default:"0" min:"0" max:"1000000" help:"Most sequences of one iteration of a worker; 0 is not known."`
	MaxNumTokens          int     `default:"0" min:"0" max:"1000000" help:"Most tokens of one iteration of a worker; 0 is not known."`
	ChunkedPrefill        string  `oneof:"true false" help:"Whether long prompts are prefilled in chunks. Empty is not known."`
	OverlapScheduler      string  `oneof:"true false" help:"Whether the engine's overlap scheduler is on. Empty is not known."`
	KVCacheDtype          string  `placeholder:"TYPE" help:"Number format of the KV cache, such as fp8."`
	FreeGPUMemoryFraction float64 `default:"0" min:"0" max:"1" help:"Share of the free GPU memory that the KV cache takes; 0 is not known."`
}

// Workload shapes the conversations.
type Workload struct {
	Concurrency    int           `default:"60" help:"Conversations to keep in progress."`
	Start          bool          `negatable:"" help:"Begin at once instead of waiting for an operator."`
	MaxConcurrency int           `default:"1000" help:"Most conversations that an operator may ask for."`
	Preset         string        `oneof:"recorded demo" help:"Workload to start from: recorded is that of the recorded results; demo is the same with questions about the answers, for a target whose answers end nowhere by themselves: a simulated cluster, or mocked engines."`
	Seed           uint64        `default:"1" help:"Seed of all draws: the same seed gives the same conversations."`
	Turns          Turns         `embed:"" prefix:"turns."`
	Openings       string        `form:"openings" placeholder:"N" help:"Different texts that open conversations; 0: one for each conversation. Without it, as many as the corpus has: 10 with the built-in articles. What is more than it has is made of its texts."`
	OpeningTokens  string        `form:"opening_tokens" placeholder:"N" help:"Length of the opening texts in tokens. Without it, 3500 to 4000, as recorded; with it, nothing is called better or worse than results with openings of another length."`
	MaxTokens      int           `default:"1024" help:"Most tokens of an answer."`
	OutputTokens   OutputTokens  `embed:"" prefix:"output_tokens."`
	Followup       Followup      `embed:"" prefix:"followup."`
	StartRate      float64       `default:"10" help:"Most new conversations a second."`
	TargetRPS      float64       `default:"25" help:"Most requests a second; 0 is no cap."`
	ThinkTime      time.Duration `default:"0s" help:"Pause of a user before the next question."`
}

// End says when a run ends by itself, when it has failed, and what it leaves.
type End struct {
	Duration time.Duration `default:"0s" min:"0s" max:"8760h" help:"How long to run: then the program prints a summary and ends. It begins at once, as with start. 0s: until it is stopped."`
	Requests int           `default:"0" min:"0" max:"1000000000" help:"How many turns to wait for that end well or fail: then the program prints a summary and ends. It begins at once, as with start. 0: any number."`
	FailIf   []string      `name:"fail_if" form:"condition" placeholder:"CONDITION" help:"Conditions by which the run fails (exit code 3), such as ttft_p95>600ms, error_rate>1% or verdict=bottleneck. In a shell, quote them."`
	Output   []string      `form:"output" placeholder:"FILE" help:"Files to write at the end: a name in .json or .html gets the summary, one in .csv the turns. With trial, sweep, capacity and compare, the report: as JSON, TSV, Markdown (.md) or HTML; with shadow, as JSON, CSV, Markdown or HTML."`
}

// Conditions are those of FailIf, which have their form already.
func (e End) Conditions() (all []report.Condition) {
	for _, text := range e.FailIf {
		if c, err := report.ParseCondition(text); err == nil {
			all = append(all, c)
		}
	}
	return all
}

// Turns is the range that the number of turns of a conversation is drawn from.
type Turns struct {
	Min int `default:"3" help:"Fewest turns of a conversation."`
	Max int `default:"5" help:"Most turns of a conversation."`
}

// OutputTokens is the distribution that each turn's limit of tokens is drawn from.
type OutputTokens struct {
	Mean float64 `default:"0" help:"Mean length that answers are cut to, in tokens; 0 cuts at max_tokens alone."`
	CV   float64 `default:"0" help:"Coefficient of variation of that length."`
}

// Followup says who asks after the first turn.
type Followup struct {
	Text       string        `placeholder:"TEXT" help:"Follow-up question that is asked every time. Without it, followup.url or the built-in questioner asks about the last answer."`
	URL        string        `form:"target" placeholder:"URL" help:"OpenAI-compatible server, with or without /v1, whose model plays the end user. Where it fails, the built-in questioner asks."`
	Model      string        `placeholder:"NAME" help:"Model of the end user. Without it, the first of /v1/models there."`
	APIKey     Secret        `kong:"-"`
	APIKeyFile string        `form:"path" placeholder:"FILE" help:"File that holds the API key of that server. LOADGEN_FOLLOWUP_API_KEY gives it instead."`
	CAFile     string        `form:"path" placeholder:"FILE" help:"PEM file of the authorities that may sign the certificate of that server."`
	CA         []byte        `kong:"-"` // content of CAFile
	Timeout    time.Duration `default:"10s" min:"100ms" max:"2m" help:"Longest wait for a question of that model, all attempts together."`
}

// Corpus says where the texts come from; nowhere means the built-in articles.
type Corpus struct {
	Dir     string        `form:"path" placeholder:"DIR" help:"Folder of .jsonl, .json, .md and .txt files. Without it, corpus.file and corpus.s3.bucket, the built-in articles."`
	File    string        `form:"path" placeholder:"FILE" help:"One such file, such as a JSONL of id, topic and text."`
	S3      S3            `embed:"" prefix:"s3."`
	Refresh time.Duration `default:"5m" min:"0s" max:"24h" help:"Pause before the texts are read again; 0 reads them once."`
}

// S3 is a bucket of such files.
type S3 struct {
	Endpoint      string `form:"origin" placeholder:"URL" help:"S3-compatible service, such as https://s3.example.org."`
	Bucket        string `form:"bucket" placeholder:"NAME" help:"Bucket of such files."`
	Prefix        string `placeholder:"TEXT" help:"Read only what begins with it."`
	Region        string `placeholder:"NAME" help:"Region that requests are signed for. Without it, the service is asked."`
	PathStyle     bool   `default:"true" negatable:"" help:"Name the bucket in the path, not in front of the host."`
	CAFile        string `form:"path" placeholder:"FILE" help:"PEM file of the authorities that may sign the certificate of the service."`
	CA            []byte `kong:"-"` // content of CAFile
	AccessKey     Secret `kong:"-"`
	AccessKeyFile string `form:"path" placeholder:"FILE" help:"File that holds the access key; without one, the reader is anonymous. LOADGEN_CORPUS_S3_ACCESS_KEY gives it instead."`
	SecretKey     Secret `kong:"-"`
	SecretKeyFile string `form:"path" placeholder:"FILE" help:"File that holds the secret key. LOADGEN_CORPUS_S3_SECRET_KEY gives it instead."`
}

// Mode is the routing mode that the cluster starts in, and how it is switched.
type Mode struct {
	Driver      string   `default:"manual" oneof:"manual pinned endpoints kubernetes simulated" help:"How the mode is switched: manual tells the operator what to do, pinned deals the turns of round_robin out to the workers of a Dynamo under kv, endpoints sends the turns of each mode to an address of its own, kubernetes patches the DynamoGraphDeployment, which also tells the mode, simulated asks the simulated cluster, which also tells its mode and its offers."`
	Mode        string   `default:"unknown" oneof:"kv round_robin least_loaded unknown" help:"Routing mode in force at the start. With the drivers kubernetes and simulated it counts only until the cluster tells its own. Where it is unknown, pinned begins with kv and endpoints with the mode at target.url; with manual it stays unknown until the metrics of a Dynamo show that it routes by KV caches, or an operator says which mode it is."`
	Speculation string   `default:"not_recorded" oneof:"off draft eagle3 not_recorded" help:"Speculation in force at the start. With the driver simulated, and with the variants of kubernetes, it counts only until the cluster tells its own."`
	Offers      []string `default:"kv,round_robin" form:"offer" placeholder:"MODE" help:"Modes that an operator may switch to with the drivers manual and kubernetes, each alone or with its speculation, as kv/eagle3."`
	Endpoints   []string `form:"endpoint" placeholder:"MODE=URL" help:"Addresses of the modes with the driver endpoints, such as kv=http://kv:8000,round_robin=http://rr:8000. One of them is target.url; without that, the address of mode.mode is."`

	Kubernetes Kubernetes `embed:"" prefix:"kubernetes."`
}

// Kubernetes says which DynamoGraphDeployment the driver kubernetes switches, and how.
type Kubernetes struct {
	Name         string        `placeholder:"NAME" help:"DynamoGraphDeployment to switch. Without it and the selector, the one whose frontend's service target.url is."`
	Namespace    string        `placeholder:"NAME" help:"Its namespace. Without it, the pod's own, or the kubeconfig's."`
	Selector     string        `placeholder:"LABELS" help:"Labels that find it instead, such as app=booth."`
	Kubeconfig   string        `form:"path" placeholder:"FILE" help:"Credentials for the API server. Without it, those of the pod, or those that kubectl takes."`
	Context      string        `placeholder:"NAME" help:"Context in the kubeconfig. Without it, its current one."`
	Restart      string        `default:"workers" oneof:"workers frontend" help:"What a switch restarts: workers, with the frontend, so that all caches are empty; or the frontend alone, so that caches stay warm and a nonce makes the prefixes cold."`
	Timeout      time.Duration `default:"15m" min:"10s" max:"6h" help:"When a switch that is not done is undone; the way back has as long."`
	VariantsFile string        `form:"path" placeholder:"FILE" help:"YAML file that says for each speculation how the workers run with it: image, args and env of their main container. Without it, speculation is not switched."`

	Variants map[api.Speculation]kubernetes.Variant `kong:"-"` // content of VariantsFile
}

// Prometheus is the server that knows the cluster's metrics.
type Prometheus struct {
	URL       string `form:"url" placeholder:"URL" help:"Prometheus to ask for the cluster's metrics. Without it, they are read from the target itself."`
	Namespace string `placeholder:"NAME" help:"Kubernetes namespace of the cluster, to tell it from others in that Prometheus."`
}

// Cluster says where metrics are where no Prometheus is.
type Cluster struct {
	MetricsURLs []string `name:"metrics_urls" form:"url" placeholder:"URL" help:"Metrics pages to read besides the target's own: those of the workers, and of DCGM exporters, whose GPUs are matched to workers by pod, host or order."`
}

// SLO are the service level objectives for p95.
type SLO struct {
	TTFT time.Duration `default:"600ms" help:"Time to first token that p95 must not exceed."`
	TPOT time.Duration `default:"60ms" help:"Time per output token that p95 must not exceed."`
}

// Slider is the range of the concurrency slider.
type Slider struct {
	Min       int `default:"60" help:"Least concurrency on the slider."`
	Max       int `default:"180" help:"Greatest concurrency on the slider."`
	Increment int `default:"10" help:"Increment of the slider."`
}

// Baseline says what live results are compared with.
type Baseline struct {
	Default string `placeholder:"NAME" help:"Baseline to compare with. Without it, the one of this deployment, else this target's own results."`
}

// Store bounds the database.
type Store struct {
	MaxConversations int           `default:"50000" min:"1" max:"10000000" help:"Conversations to keep; the oldest go first."`
	MaxAge           time.Duration `default:"168h" min:"1h" max:"87600h" help:"Longest time to keep a conversation."`
	MaxBytes         int           `default:"2147483648" min:"0" max:"1099511627776" help:"Bytes that the database file may grow to, at least 16777216; the oldest conversations go first. 0: no limit."`
}

// Whatif bounds the simulations that answer what-if questions.
type Whatif struct {
	CPUs     int    `name:"cpus" default:"1" min:"0" max:"64" help:"Cores that a simulation may use, at the lowest priority; 0 turns what-if simulations off."`
	Profiles string `form:"path" placeholder:"DIR" help:"Folder of profiles that can be simulated besides the built-in ones, such as booth calibrate writes. Without it, profiles in data_dir."`
}

// Routers says whether other routers are followed in the shadow of the one in force.
type Routers struct {
	Enabled  bool `default:"true" negatable:"" help:"Follow what every worker's cache would hold under other routers, on the same turns, where the target tells its workers and the size of their caches. Off, no other router is shown, and no decision of a Dynamo's router is explained."`
	TokenIDs bool `name:"token_ids" default:"true" negatable:"" help:"Ask a Dynamo for the ids of each prompt's tokens (nvext annotation token_ids, some 40 kB a turn). Off, or where it tells none, blocks of text stand for blocks of tokens, which is less accurate."`
}

// Log says what is logged to standard error.
type Log struct {
	Level  string `default:"info" oneof:"debug info warn error" help:"Least severe messages to log."`
	Format string `default:"text" oneof:"text json" help:"Form of the log."`
}

// presets are the values that a preset gives to fields that no source sets. What
// is known of the recorded workload: always five turns on ten texts, one short
// sentence at every follow-up, and this max_tokens.
var presets = map[string]map[string]string{
	"recorded": {
		"turns.min": "5", "turns.max": "5", "openings": "10", "max_tokens": "1024",
		"output_tokens.mean": "0", "followup.text": "elaborate further",
	},
	"demo": {"turns.min": "5", "turns.max": "5", "max_tokens": "1024"},
}

// answers are what every preset adds where answers end nowhere by themselves: lengths as
// the recorded tables tell them (package closedloop says how). A real model ends them
// itself, as the recorded one did.
var answers = map[string]string{"output_tokens.mean": "900", "output_tokens.cv": "0.3"}

// endless says whether answers go on up to whatever limit is set.
func (c *Config) endless() bool {
	kind := api.TargetKind(c.Deployment.Kind)
	return c.Preset == "demo" || kind == api.TargetSimulated || kind == api.TargetMocked || c.Mode.Driver == "simulated"
}

// Command is what the program is asked to do.
type Command string

// The commands. Help means that the help has been printed already.
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
)

// WorkloadSettings gives the settings that a lane starts with.
func (c *Config) WorkloadSettings() workload.Settings {
	s := workload.Settings{
		Concurrency: c.Concurrency,
		Turns:       api.Range(c.Turns),
		MaxTokens:   c.MaxTokens,
		StartRate:   c.StartRate,
		TargetRPS:   c.TargetRPS,
		ThinkTime:   c.ThinkTime,
	}
	if n, err := strconv.Atoi(c.Openings); err == nil { // of the form, or empty
		s.Openings = workload.OpeningsOf(n)
	}
	if c.OutputTokens.Mean > 0 {
		s.Output = &api.Distribution{Mean: c.OutputTokens.Mean, CV: c.OutputTokens.CV}
	}
	return s
}

// OpeningLength is the length of the opening texts in tokens, 0 where they are as they are.
func (c *Config) OpeningLength() int {
	n, err := strconv.Atoi(c.OpeningTokens)
	if err != nil { // empty, since anything else has the form
		return 0
	}
	return n
}

// Settings gives the settings that an administrator may change later.
func (c *Config) Settings() api.Settings {
	return api.Settings{
		SLO:             api.SLO{TTFT: c.SLO.TTFT.Seconds(), TPOT: c.SLO.TPOT.Seconds()},
		Slider:          api.Slider(c.Slider),
		MaxConcurrency:  c.MaxConcurrency,
		DefaultBaseline: c.Baseline.Default,
		Title:           c.Title,
		Subtitle:        c.Subtitle,
		Vendor:          api.Vendor(c.Vendor),
	}
}

// API gives the deployment as the API tells it. The speculation is that of the
// mode in force.
func (d Deployment) API() api.Deployment {
	return api.Deployment{
		Engine: d.Engine, Model: d.Model, GPU: d.GPU, Workers: d.Workers,
		TensorParallel: d.TensorParallel,

		Dynamo: d.Dynamo, Kubernetes: d.Kubernetes, WorkerImage: d.WorkerImage, Serving: d.Serving,
		BlockSize: d.BlockSize, MaxBatchSize: d.MaxBatchSize, MaxNumTokens: d.MaxNumTokens,
		ChunkedPrefill: known(d.ChunkedPrefill), OverlapScheduler: known(d.OverlapScheduler),
		KVCacheDtype: d.KVCacheDtype, FreeGPUMemoryFraction: d.FreeGPUMemoryFraction,
	}
}

// known reads true and false; empty is not known.
func known(text string) *bool {
	if text == "" {
		return nil
	}
	return new(text == "true")
}

// State is the mode that the cluster starts in.
func (m Mode) State() api.ModeState {
	return api.ModeState{Mode: api.Mode(m.Mode), Speculation: api.Speculation(m.Speculation)}
}

// States are the modes on offer; one without a speculation of its own has that
// of the start.
func (m Mode) States() []api.ModeState {
	states := make([]api.ModeState, len(m.Offers))
	for i, offer := range m.Offers {
		states[i] = m.offered(offer)
	}
	return states
}

// Addresses are those of the modes, where each has one.
func (m Mode) Addresses() []cluster.Endpoint {
	all := make([]cluster.Endpoint, len(m.Endpoints))
	for i, endpoint := range m.Endpoints {
		offer, address, _ := strings.Cut(endpoint, "=")
		all[i] = cluster.Endpoint{Mode: m.offered(offer), URL: address}
	}
	return all
}

// atStart is the mode that the driver itself tells for the start, where the
// configuration names none. The target is empty where that comes from the mode.
func (m Mode) atStart(target string) string {
	switch {
	case m.Mode != string(api.ModeUnknown):
	case m.Driver == "pinned":
		return string(api.ModeKV)
	case m.Driver == "endpoints":
		all := m.Addresses()
		i := slices.IndexFunc(all, func(e cluster.Endpoint) bool {
			return e.URL == target || target == "" && e.Mode.Mode == api.ModeKV
		})
		if len(all) > 0 {
			return string(all[max(i, 0)].Mode.Mode)
		}
	}
	return m.Mode
}

// Address is that of the mode at the start, "" where it has none.
func (m Mode) Address() string {
	for _, e := range m.Addresses() {
		if e.Mode == m.State() {
			return e.URL
		}
	}
	return ""
}

// offered reads one offer, which has the form already.
func (m Mode) offered(offer string) api.ModeState {
	mode, speculation, found := strings.Cut(offer, "/")
	if !found {
		speculation = m.Speculation
	}
	return api.ModeState{Mode: api.Mode(mode), Speculation: api.Speculation(speculation)}
}
