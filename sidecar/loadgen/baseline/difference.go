package baseline

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"kvbooth/sidecar/api"
)

// The values of a difference for a side without the setting.
const (
	notKnown    = "not known"
	notRecorded = "not recorded"
)

// differences lists every setting in which the live run differs from the baseline. A setting that neither side has is
// no difference.
func differences(live Live, b api.Baseline) []api.Difference {
	d := differenceList{}
	was, is := b.Deployment, live.Deployment
	if is.Kind != "" && was.Kind != "" {
		d.text("kind", string(is.Kind), string(was.Kind), plain)
	}
	d.text("engine", is.Engine, was.Engine, engineName)
	d.text("model", is.Model, was.Model, modelName)
	d.text("gpu", is.GPU, was.GPU, gpuName)
	d.text("workers", count(is.Workers), count(was.Workers), plain)
	d.text("tensor_parallel", count(is.TensorParallel), count(was.TensorParallel), plain)
	d.speculation(live, b)
	d.settings(is, was)
	d.workload(live.Shape, b.Workload)
	return d
}

// Unlike names every way in which one result is unlike another, each of them a baseline in
// one mode. In a difference, Live is what is and Baseline what was. The second result
// says why their figures cannot be held against each other at all; empty: they can, as
// far as is known.
func Unlike(is, was api.Baseline, mode, wasMode api.ModeState) ([]api.Difference, string) {
	live := Live{Deployment: is.Deployment, Mode: mode}
	if is.Workload != nil {
		live.Shape = *is.Workload
	}
	was.Rows = rowsOf(was, wasMode)
	if is.Workload == nil && was.Workload == nil {
		was.Workload = &live.Shape
	}
	found := append([]api.Difference{}, differences(live, was)...)
	if is.Workload == nil && was.Workload != nil {
		return found, incomparable(*was.Workload, nil)
	}
	return found, incomparable(live.Shape, was.Workload)
}

// setting is one version or setting of a stack.
type setting struct {
	field string
	name  string // for readers
	of    func(api.Deployment) string
}

var settings = []setting{
	{"dynamo", "Dynamo", func(d api.Deployment) string { return d.Dynamo }},
	{"kubernetes", "Kubernetes", func(d api.Deployment) string { return d.Kubernetes }},
	{"worker_image", "worker image", func(d api.Deployment) string { return d.WorkerImage }},
	{"serving", "serving", func(d api.Deployment) string { return d.Serving }},
	{"block_size", "block size", func(d api.Deployment) string { return count(d.BlockSize) }},
	{"max_batch_size", "max batch size", func(d api.Deployment) string { return count(d.MaxBatchSize) }},
	{"max_num_tokens", "max num tokens", func(d api.Deployment) string { return count(d.MaxNumTokens) }},
	{"chunked_prefill", "chunked prefill", func(d api.Deployment) string { return onOff(d.ChunkedPrefill) }},
	{"overlap_scheduler", "overlap scheduler", func(d api.Deployment) string { return onOff(d.OverlapScheduler) }},
	{"kv_cache_dtype", "KV cache dtype", func(d api.Deployment) string { return strings.ToLower(d.KVCacheDtype) }},
	{
		"free_gpu_memory_fraction", "free GPU memory fraction",
		func(d api.Deployment) string { return fraction(d.FreeGPUMemoryFraction) },
	},
}

// settings adds a difference for each setting that both sides have. Settings that only one side has are combined into
// one difference: a target that reports none of its settings would otherwise fill the screen.
func (d *differenceList) settings(is, was api.Deployment) {
	var liveOnly, recordedOnly []string
	for _, s := range settings {
		live, recorded := s.of(is), s.of(was)
		switch {
		case live == recorded:
		case recorded == "":
			liveOnly = append(liveOnly, s.name+" "+live)
		case live == "":
			recordedOnly = append(recordedOnly, s.name+" "+recorded)
		default:
			d.text(s.field, live, recorded, plain)
		}
	}
	d.text("settings", strings.Join(liveOnly, ", "), strings.Join(recordedOnly, ", "), plain)
}

func onOff(v *bool) string {
	switch {
	case v == nil:
		return ""
	case *v:
		return "on"
	default:
		return "off"
	}
}

func fraction(v float64) string {
	if v == 0 {
		return ""
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

type differenceList []api.Difference

// text adds a difference unless the names are the same in their plain form.
func (d *differenceList) text(field, live, recorded string, plain func(string) string) {
	if plain(live) == plain(recorded) {
		return
	}
	*d = append(*d, api.Difference{
		Field: field, Live: cmp.Or(live, notKnown), Baseline: cmp.Or(recorded, notRecorded),
	})
}

// speculation compares the live run with the rows, not with the deployment: a baseline with columns for several kinds
// equals the live run if one of them does.
func (d *differenceList) speculation(live Live, b api.Baseline) {
	is := known(live.Mode.Speculation)
	if is == "" {
		is = known(live.Deployment.Speculation)
	}
	var kinds []string
	for _, m := range modesOf(b) {
		if was := known(m.Speculation); was == is {
			return
		} else if was != "" {
			kinds = append(kinds, was)
		}
	}
	slices.Sort(kinds)
	d.text("speculation", is, strings.Join(slices.Compact(kinds), ", "), plain)
}

// known returns the empty string for a speculation that was not recorded.
func known(s api.Speculation) string {
	if s == api.SpeculationNotRecorded {
		return ""
	}
	return string(s)
}

func (d *differenceList) workload(is api.WorkloadShape, was *api.WorkloadShape) {
	if was == nil {
		d.text("workload", fmt.Sprintf("turns %s, max_tokens %s",
			cmp.Or(turns(is.Turns), notKnown), cmp.Or(count(is.MaxTokens), notKnown)), "", plain)
		if is.OpeningTokens != 0 {
			d.text("opening_tokens", openingTokens(is.OpeningTokens), "", plain)
		}
		return
	}
	d.text("traffic", cmp.Or(is.Traffic, ofTexts), cmp.Or(was.Traffic, ofTexts), plain)
	d.text("turns", turns(is.Turns), turns(was.Turns), plain)
	d.text("max_tokens", count(is.MaxTokens), count(was.MaxTokens), plain)
	d.text("openings", openings(is.Openings), openings(was.Openings), plain)
	d.text("opening_tokens", openingTokens(is.OpeningTokens), openingTokens(was.OpeningTokens), plain)
	d.text("output_tokens", lengths(is.OutputTokens), lengths(was.OutputTokens), plain)
	d.text("corpus", is.Corpus, was.Corpus, plain)
	d.text("followup", is.Followup, was.Followup, plain)
	for _, s := range api.WorkloadSettings {
		if s.Key != "target_rps" {
			d.number(s, is.Number(s), was.Number(s))
		}
	}
	d.both("target_rps", requestCap(is.TargetRPS), requestCap(was.TargetRPS))
	d.text("arrivals", cmp.Or(is.Arrivals, asOthersEnd), cmp.Or(was.Arrivals, asOthersEnd), plain)
	d.text("request", cmp.Or(is.Request, noFields), cmp.Or(was.Request, noFields), plain)
	d.text("session", cmp.Or(is.Session, noSession), cmp.Or(was.Session, noSession), plain)
	d.text("request_id", requestID(is.NoRequestID), requestID(was.NoRequestID), plain)
	d.both("timeouts", timeouts(is.Timeouts), timeouts(was.Timeouts))
}

// noFields describes requests without additional fields, which is how all requests were before there were such
// settings.
const noFields = "no further fields"

// ofTexts describes conversations about the texts of a corpus, which all were before there was other traffic.
const ofTexts = "conversations about texts"

// asOthersEnd describes a number of conversations in progress, which all loads held before rates existed.
const asOthersEnd = "as others end"

// noSession describes requests that show no session, which is how all requests were before there was such a setting.
const noSession = "no session"

func requestID(omitted bool) string {
	if omitted {
		return "without X-Request-Id"
	}
	return "with X-Request-Id"
}

// both adds a difference of a setting that both sides have: no other program records it.
func (d *differenceList) both(field, live, recorded string) {
	if live != "" && recorded != "" {
		d.text(field, live, recorded, plain)
	}
}

// number compares the numbers of a setting, such as the pauses of users between turns. Where one side does not have it,
// only a number above 0 of the other is a difference.
func (d *differenceList) number(s api.WorkloadSetting, is, was *float64) {
	text := func(v *float64) string {
		if v == nil {
			return ""
		}
		return s.Text(*v)
	}
	if is != nil && *is > 0 || was != nil && *was > 0 {
		d.text(s.Key, text(is), text(was), plain)
	}
}

func requestCap(v *float64) string {
	switch {
	case v == nil:
		return ""
	case *v == 0:
		return "no cap"
	}
	return fmt.Sprintf("%g requests/s", *v)
}

func timeouts(t *api.Timeouts) string {
	if t == nil {
		return ""
	}
	return fmt.Sprintf("first token %g s, stall %g s, turn %g s", t.FirstToken, t.Stall, t.Turn)
}

func turns(r api.Range) string {
	if r.Min == r.Max {
		return count(r.Max)
	}
	return fmt.Sprintf("%d–%d", r.Min, r.Max)
}

func openings(n *int) string {
	switch {
	case n == nil:
		return ""
	case *n == 0:
		return "one for each conversation"
	}
	return strconv.Itoa(*n)
}

func openingTokens(n int) string {
	if n == 0 {
		return "3,500 to 4,000 tokens"
	}
	return fmt.Sprintf("%d tokens", n)
}

// incomparable returns why figures cannot be compared with a baseline at all: where conversations open with texts of
// another length, every prompt has another length, and so has every measurement. Empty: they can be compared, as far as
// is known.
func incomparable(is api.WorkloadShape, was *api.WorkloadShape) string {
	switch {
	case was == nil && is.OpeningTokens == 0, was != nil && is.OpeningTokens == was.OpeningTokens:
		return ""
	case was == nil:
		return fmt.Sprintf("conversations open with texts of %s here; the baseline does not record their length",
			openingTokens(is.OpeningTokens))
	}
	return fmt.Sprintf("conversations open with texts of %s here, but of %s in the baseline",
		openingTokens(is.OpeningTokens), openingTokens(was.OpeningTokens))
}

func lengths(d *api.Distribution) string {
	if d == nil {
		return "as the model ends them"
	}
	return fmt.Sprintf("mean %g, cv %g", d.Mean, d.CV)
}

func count(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func plain(s string) string { return s }

// words matches the words of a name: its runs of letters and digits, in lower case.
var words = regexp.MustCompile(`[a-z0-9]+`)

// without joins the words of a name, omitting insignificant ones.
func without(name string, of ...string) string {
	list := words.FindAllString(strings.ToLower(name), -1)
	return strings.Join(slices.DeleteFunc(list, func(w string) bool { return slices.Contains(of, w) }), "")
}

// engineName maps the long name of TensorRT-LLM to the short one.
func engineName(s string) string {
	return strings.Replace(without(s), "tensorrtllm", "trtllm", 1)
}

// modelName omits the publisher of a model: nvidia/Llama-3.1-70B-Instruct-FP8 is Llama 3.1 70B Instruct FP8.
func modelName(s string) string {
	s = strings.TrimRight(s, "/")
	return without(s[strings.LastIndex(s, "/")+1:], "meta")
}

// modelFamily omits the tuning from a model's name, which does not change its speed. Size and number format do, and are
// kept.
func modelFamily(s string) string {
	s = strings.TrimRight(s, "/")
	return without(s[strings.LastIndex(s, "/")+1:], "meta", "instruct", "chat", "it", "hf", "base")
}

// gpuName omits what drivers add to a GPU's name: NVIDIA H100 80GB HBM3 is an H100. Variants such as NVL stay distinct.
func gpuName(s string) string {
	return without(gpuMemory.ReplaceAllString(strings.ToLower(s), " "), "nvidia", "tensor", "core", "gpu", "sxm", "sxm4",
		"sxm5", "hbm3", "hbm3e")
}

var gpuMemory = regexp.MustCompile(`\b[0-9]+ ?gi?b\b`)
