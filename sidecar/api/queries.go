package api

// LaneQuery names a lane.
type LaneQuery struct {
	Lane string `query:"lane" maxLength:"64" default:"main"` // the lane
}

// LaneName returns the name of the lane.
func (q LaneQuery) LaneName() string { return q.Lane }

// DecisionQuery selects decisions of a lane's router.
type DecisionQuery struct {
	LaneQuery

	Limit int `query:"limit" minimum:"1" maximum:"1000" default:"50"`
}

// ConversationQuery selects conversations. Zero values select all; a limit of 0 means 50.
type ConversationQuery struct {
	Lane   string             `query:"lane" maxLength:"64" default:"main"` // the lane
	Status ConversationStatus `query:"status"`
	Topic  string             `query:"topic" maxLength:"200"`
	From   int64              `query:"from" minimum:"0" default:"0"` // Unix milliseconds: in progress then or later; 0: all
	To     int64              `query:"to" minimum:"0" default:"0"`   // Unix milliseconds: begun by then; 0: all
	Cursor string             `query:"cursor" maxLength:"200"`       // `next_cursor` of the page before
	Limit  int                `query:"limit" minimum:"1" maximum:"200" default:"50"`
}

// TurnQuery selects the turns of a lane.
type TurnQuery struct {
	LaneQuery

	Step int64 `query:"step" minimum:"0" default:"0"` // 0: all steps
}

// EventQuery selects events.
type EventQuery struct {
	Lane  string `query:"lane" maxLength:"64"` // without it, events of all lanes and events without a lane
	Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"100"`
}

// RunQuery selects runs of the history.
type RunQuery struct {
	Name string `query:"name" maxLength:"100"` // of the setting `name`; without it, all
}

// BaselineQuery selects a page of the baselines.
type BaselineQuery struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"200" default:"100"`
	Cursor string `query:"cursor" maxLength:"200"` // `next_cursor` of the page before
}

// ImportQuery adds to an imported file the values that it does not contain, and selects the kind of import.
type ImportQuery struct {
	// name of the baseline in a CSV file or in a file of another program; overrides the name in a Baseline in JSON
	Name  string `query:"name" maxLength:"100"`
	Title string `query:"title" maxLength:"200"` // the title, in place of the file's
	// the routing mode that another program's results were measured in; rejected with a file that contains it
	Mode        Mode        `query:"mode"`
	Speculation Speculation `query:"speculation"` // the speculation of that mode; without it, not_recorded
	// with true, the rows are added to the imported baseline of that name and replace rows of the same concurrency,
	// mode and speculation; 422 if the two describe different systems
	Merge  bool `query:"merge"`
	DryRun bool `query:"dry_run"` // with true, the file is checked but not stored
}

// ComparisonQuery selects the baseline that a lane is compared with.
type ComparisonQuery struct {
	LaneQuery

	Baseline string `query:"baseline" maxLength:"100"` // the name of a baseline; without it, the default one of the lane
}

// ReportQuery names the two results that a report compares.
type ReportQuery struct {
	// name of the baseline that is compared with
	A            string      `query:"a" required:"true" maxLength:"100"`
	AArm         string      `query:"a_arm" maxLength:"60"` // arm of a, for rows with names of arms
	AMode        Mode        `query:"a_mode"`               // mode of a; default: the only mode of the baseline
	ASpeculation Speculation `query:"a_speculation"`        // speculation of a; default: the only one in its mode
	// name of the baseline that is compared
	B            string      `query:"b" required:"true" maxLength:"100"`
	BArm         string      `query:"b_arm" maxLength:"60"` // arm of b, for rows with names of arms
	BMode        Mode        `query:"b_mode"`               // mode of b; default: the only mode of the baseline
	BSpeculation Speculation `query:"b_speculation"`        // speculation of b; default: the only one in its mode
	// levels that count, of those that both have, such as 60-160, 60-160/20 (every 20th) or 60,80,100; without it, all
	Levels string `query:"levels" maxLength:"200"`
}
