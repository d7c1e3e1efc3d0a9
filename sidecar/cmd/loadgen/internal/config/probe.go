package config

// Probe is the request of the command probe-router.
type Probe struct {
	Engines []string `placeholder:"URL" help:"Engines behind the router, to see what it adds to them and whether it follows their KV events. Default: the pages of cluster.metrics_urls at whose address an engine lists its model."`
	Format  string   `default:"text" oneof:"text json" help:"Format on standard output."`
}
