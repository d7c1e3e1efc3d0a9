package config

import (
	"cmp"
	"time"

	"github.com/alecthomas/kong"
)

// Record is the request of the command record.
type Record struct {
	File string
	From string // the load generator's URL
	For  time.Duration
}

// recordFlags are the flags of the command record.
type recordFlags struct {
	File string        `arg:"" form:"path" help:"File to write, which must not exist yet."`
	From string        `form:"url" placeholder:"URL" help:"Load generator to record. Default: http://127.0.0.1:8088."`
	For  time.Duration `min:"1s" max:"2h" help:"Length of the recording; Ctrl-C ends it sooner. Default: 10m."`
}

// replayFlags are the flags of the command replay.
type replayFlags struct {
	File string `arg:"" form:"path" help:"Recording to play, as written by loadgen record."`
}

// record returns the request of the command record; nil for other commands.
func (l *loader) record(ctx *kong.Context) *Record {
	if commandOf(ctx) != Recorded {
		return nil
	}
	r := l.grammar.Record
	return &Record{File: r.File, From: cmp.Or(r.From, "http://127.0.0.1:8088"), For: cmp.Or(r.For, 10*time.Minute)}
}
