package api_test

import (
	"fmt"
	"strings"
	"testing"

	"kvbooth/sidecar/api"
)

// The front end has what forms show of the workload's settings from here.
func TestTypeScriptHasWorkloadSettings(t *testing.T) {
	const file = "../../src/client/workload.ts"
	var text strings.Builder
	text.WriteString(`
/** What is the same of a setting of a workload in every form. */
export interface WorkloadSetting {
  readonly label: string;
  readonly unit?: string;
  /** What 0 means. */
  readonly zero?: string;
}

const table = {
`)
	units := strings.NewReplacer(" per second", "/s", "seconds", "s")
	for _, s := range api.WorkloadSettings {
		key := s.Key
		if strings.Contains(key, ".") {
			key = "'" + key + "'"
		}
		fmt.Fprintf(&text, "  %s: { label: '%s'", key, s.Label)
		if s.Limit.Unit != "" {
			fmt.Fprintf(&text, ", unit: '%s'", units.Replace(s.Limit.Unit))
		}
		if s.Zero != "" {
			fmt.Fprintf(&text, ", zero: '%s'", s.Zero)
		}
		text.WriteString(" },\n")
	}
	text.WriteString(`} satisfies Record<string, WorkloadSetting>;

/** The path of a setting, as the API's problems name it. */
export type WorkloadSettingName = keyof typeof table;

/** The settings of a workload. */
export const workloadSettings: Record<WorkloadSettingName, WorkloadSetting> = table;
`)
	requireGenerated(t, file, text.String())
}
