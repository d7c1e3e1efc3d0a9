package sim

import (
	"archive/zip"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strings"
)

// gridPoints is the number of points of the decode grid on each axis. Dynamo interpolates linearly between them. A
// step in the cost is spread over less than one sequence.
const gridPoints = 128

// longestContext is the last context length of the decode grid, in tokens. The
// workload's prompts end near 7,000 tokens.
const longestContext = 16_384

// WriteNPZ writes the profile as the NPZ archive that Dynamo's mock worker reads with --planner-profile-data: float64
// arrays, times in milliseconds.
//
//	prefill_isl, prefill_ttft_ms                    tokens to prefill, and the time they take
//	decode_active_kv_tokens, decode_context_length  the axes of decode_itl
//	decode_itl [kv tokens, context length]          time between two tokens of a sequence
//
// The format has neither a batch size nor speculation. Therefore the number of sequences is taken to be the active
// tokens divided by the mean context, and an iteration's time is divided by the tokens that a sequence gets from it.
// A step that prefills takes the prefill's time plus the decode's.
func WriteNPZ(w io.Writer, p Profile) error {
	kv := gridAxis(0, float64(p.KV.Tokens()))
	contexts := gridAxis(float64(p.KV.BlockTokens), longestContext)
	itl := make([]float64, 0, len(kv)*len(contexts))
	for _, tokens := range kv {
		for _, context := range contexts {
			itl = append(itl, p.tokenGap(tokens, context))
		}
	}
	prompt := []float64{0, float64(p.MaxBatchedTokens)}
	alone := p.Step.Host + p.Step.Base
	prefill := []float64{alone, alone + p.Step.PerPrefillToken*prompt[1]}

	archive := zip.NewWriter(w)
	for _, array := range []struct {
		name   string
		shape  []int
		values []float64
	}{
		{"prefill_isl", []int{len(prompt)}, prompt},
		{"prefill_ttft_ms", []int{len(prefill)}, prefill},
		{"decode_active_kv_tokens", []int{len(kv)}, kv},
		{"decode_context_length", []int{len(contexts)}, contexts},
		{"decode_itl", []int{len(kv), len(contexts)}, itl},
	} {
		entry, err := archive.CreateHeader(&zip.FileHeader{Name: array.name + ".npy", Method: zip.Store})
		if err != nil {
			return fmt.Errorf("write profile: %w", err)
		}
		if err := writeNPY(entry, array.shape, array.values); err != nil {
			return fmt.Errorf("write profile: %s: %w", array.name, err)
		}
	}
	if err := archive.Close(); err != nil {
		return fmt.Errorf("write profile: %w", err)
	}
	return nil
}

// tokenGap returns the time in milliseconds between two tokens of a sequence, while the worker's sequences have this
// mean context and kvTokens tokens in total.
func (p Profile) tokenGap(kvTokens, context float64) float64 {
	sequences := min(max(math.Round(kvTokens/context), 1), float64(p.MaxSequences))
	return p.Step.Decode(int(sequences), kvTokens) / p.TokensPerStep()
}

// gridAxis returns gridPoints evenly spaced numbers, both ends included.
func gridAxis(from, to float64) []float64 {
	points := make([]float64, gridPoints)
	for i := range points {
		points[i] = from + (to-from)*float64(i)/(gridPoints-1)
	}
	return points
}

// writeNPY writes one array in NumPy's format, version 1.0: magic, length of the header, the header padded so that the
// data begin at a multiple of 64, the data as little-endian float64 in row-major order.
func writeNPY(w io.Writer, shape []int, values []float64) error {
	const preamble, alignment = 10, 64
	dims := ""
	for _, n := range shape {
		dims += fmt.Sprintf("%d,", n)
	}
	header := fmt.Sprintf("{'descr': '<f8', 'fortran_order': False, 'shape': (%s), }", dims)
	padding := alignment - (preamble+len(header)+1)%alignment
	header += strings.Repeat(" ", padding) + "\n"

	out := []byte("\x93NUMPY\x01\x00")
	out = binary.LittleEndian.AppendUint16(out, uint16(len(header)))
	out = append(out, header...)
	for _, v := range values {
		out = binary.LittleEndian.AppendUint64(out, math.Float64bits(v))
	}
	_, err := w.Write(out)
	return err
}
