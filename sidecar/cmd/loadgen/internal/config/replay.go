package config

import (
	"strings"
	"time"

	"kvbooth/sidecar/api"
)

// Record is the request of the command record.
type Record struct {
	File string        `arg:"" optional:"" form:"path" help:"File to write, which must not exist yet. Not with --output."`
	From string        `default:"http://127.0.0.1:8088" form:"url" placeholder:"URL" help:"Load generator to record."`
	For  time.Duration `default:"10m" min:"1s" max:"2h" help:"Length of the recording of screens; Ctrl-C ends it sooner."`
	Run  string        `placeholder:"RUN" help:"With --output: the run to record, such as mf3k2a1, from the ids of its conversations. Default: the latest."`
}

// check requires either a recording of screens or one of the traffic.
func (r *Record) check(outputs []string) error {
	switch {
	case r == nil:
	case len(outputs) == 0 && r.File == "":
		return api.Require("file", "a file for a recording of screens, or --output trace.jsonl for one of the traffic")
	case len(outputs) > 0 && r.File != "":
		return api.Refuse("file", r.File, "no file beside --output")
	case len(outputs) > 1:
		return api.Refuse("output", strings.Join(outputs, ", "), "one file")
	}
	return nil
}

// replayFlags are the flags of the command replay.
type replayFlags struct {
	File string `arg:"" form:"path" help:"Recording to play, as written by loadgen record."`
}
