package prometheus

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/util/compression"
)

// What one query may take, so that a careless one cannot take the machine.
const (
	maxQueries   = 4 // at once; others wait
	maxSamples   = 5_000_000
	queryTimeout = 30 * time.Second // with the waiting
)

// The storage's buffers and pieces, smaller than Prometheus' own since what is
// scraped here is small.
const (
	walSegment  = 16 << 20  // bytes; the log is cut at whole segments
	chunkBuffer = 256 << 10 // bytes
	stripes     = 1 << 10   // of the map of series, a power of two
)

// store is the samples on disk, and what queries them.
type store struct {
	db     *tsdb.DB
	stats  *tsdb.DBStats
	engine *promql.Engine
	parser parser.Parser
}

// openStore opens the samples in the data directory, which is locked already. What
// a killed process has left is repaired.
func openStore(o Options, reg prometheus.Registerer) (*store, error) {
	s := &store{stats: tsdb.NewDBStats(), parser: parser.NewParser(parser.Options{})}
	var err error
	if s.db, err = tsdb.Open(o.DataDir, o.Log.With("component", "tsdb"), reg, storageOptions(o), s.stats); err != nil {
		return nil, fmt.Errorf("opening the samples in %s: %w", o.DataDir, err)
	}
	tracker, err := promql.NewActiveQueryTracker(o.DataDir, maxQueries, o.Log.With("component", "queries"))
	if err != nil {
		return nil, errors.Join(err, s.db.Close())
	}
	s.engine = promql.NewEngine(promql.EngineOpts{
		Logger: o.Log.With("component", "engine"), Reg: reg, Parser: s.parser,
		MaxSamples: maxSamples, Timeout: queryTimeout, ActiveQueryTracker: tracker,
		NoStepSubqueryIntervalFn: func(int64) int64 { return time.Minute.Milliseconds() },
		EnableAtModifier:         true, EnableNegativeOffset: true, // as every Prometheus has them
	})
	return s, nil
}

func storageOptions(o Options) *tsdb.Options {
	opts := tsdb.DefaultOptions()
	opts.NoLockfile = true // see lock
	opts.RetentionDuration = o.Retention.Milliseconds()
	opts.MaxBytes = o.RetentionSize
	opts.MaxBlockDuration = max(tsdb.DefaultBlockDuration, opts.RetentionDuration/10)
	opts.WALCompression = compression.Zstd
	opts.WALSegmentSize = walSegment
	opts.HeadChunksWriteBufferSize = chunkBuffer
	opts.StripeSize = stripes
	return opts
}

// close must not be called while a query runs.
func (s *store) close() error { return errors.Join(s.engine.Close(), s.db.Close()) }

// status is what the API's calls under /status/tsdb ask.
type status struct {
	*tsdb.DB
	stats *tsdb.DBStats
}

func (s status) Stats(label string, limit int) (*tsdb.Stats, error) {
	return s.Head().Stats(label, limit), nil
}

func (s status) WALReplayStatus() (tsdb.WALReplayStatus, error) {
	return s.stats.Head.WALReplayStatus.GetWALReplayStatus(), nil
}

func (s status) BlockMetas() ([]tsdb.BlockMeta, error) { return s.DB.BlockMetas(), nil }
