package config

import "time"

// Record is the request of the command record.
type Record struct {
	File string        `arg:"" form:"path" help:"File to write, which must not exist yet."`
	From string        `default:"http://127.0.0.1:8088" form:"url" placeholder:"URL" help:"Load generator to record."`
	For  time.Duration `default:"10m" min:"1s" max:"2h" help:"Length of the recording; Ctrl-C ends it sooner."`
}

// replayFlags are the flags of the command replay.
type replayFlags struct {
	File string `arg:"" form:"path" help:"Recording to play, as written by loadgen record."`
}
