package config

// Probe is the request of the command probe-router.
type Probe struct {
	Engines []string `placeholder:"URL" help:"Engines behind the router, to measure what it adds and whether it follows their KV events. Default: the pages of cluster.metrics_urls at whose address an engine lists its model."`
	Format  string   `default:"text" oneof:"text json" help:"Format on standard output."`
}

// Why is the request of the command why.
type Why struct {
	From string `default:"http://127.0.0.1:8088" placeholder:"URL" help:"Address of the running load generator."`
	Lane string `default:"main" oneof:"main twin" help:"Lane whose turns are looked at."`

	Format string `default:"text" oneof:"text json" help:"Format on standard output."`
}

// History is the request of the command history.
type History struct {
	Action string `arg:"" optional:"" oneof:"accept withdraw" help:"Accept or withdraw a run: accept compares later runs with it, and withdraw no longer does. Without one, the history is listed."`
	Run    string `arg:"" optional:"" help:"Id of the run, or latest."`
	Format string `default:"text" oneof:"text json" help:"Format on standard output."`
}
