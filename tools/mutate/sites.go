package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// site is a place of the code with one fault that can be put there.
type site struct {
	file       string
	start, end int // offsets of the node
	order      int // of several faults at one node
	line       int
	what       string // the fault in words
	original   string

	before, after func(number int) string // inserted around the node
	operator      int                     // offset of an operator that a comma replaces; 0: none
	width         int                     // of that operator
}

func (s site) String() string {
	text := strings.Join(strings.Fields(s.original), " ")
	if len(text) > 70 {
		text = text[:70] + "…"
	}
	return fmt.Sprintf("%s:%d: %s: %s", filepath.Base(s.file), s.line, s.what, text)
}

// sample draws n of the sites, in their order.
func sample(all []site, n int, seed uint64) []site {
	if n == 0 || n >= len(all) {
		return all
	}
	random := rand.New(rand.NewPCG(seed, 0))
	chosen := random.Perm(len(all))[:n]
	slices.Sort(chosen)
	var picked []site
	for _, i := range chosen {
		picked = append(picked, all[i])
	}
	return picked
}

// finder collects the sites of a file.
type finder struct {
	p     *packages.Package
	name  string
	text  []byte
	found []site
}

// sites are all places of a package's files, in order.
func sites(p *packages.Package) []site {
	var all []site
	for i, file := range p.Syntax {
		name := p.CompiledGoFiles[i]
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		f := &finder{p: p, name: name, text: text}
		ast.Inspect(file, f.visit)
		all = append(all, f.found...)
	}
	slices.SortStableFunc(all, func(a, b site) int {
		return cmp.Or(strings.Compare(a.file, b.file), a.start-b.start, b.end-a.end, a.order-b.order)
	})
	return all
}

func (f *finder) offset(at token.Pos) int { return f.p.Fset.Position(at).Offset }

func (f *finder) source(n ast.Node) string {
	return string(f.text[f.offset(n.Pos()):f.offset(n.End())])
}

func (f *finder) add(n ast.Node, what string, order int, before, after func(int) string) *site {
	f.found = append(f.found, site{
		file: f.name, start: f.offset(n.Pos()), end: f.offset(n.End()), order: order,
		line: f.p.Fset.Position(n.Pos()).Line, what: what, original: f.source(n), before: before, after: after,
	})
	return &f.found[len(f.found)-1]
}

func (f *finder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GenDecl:
		return n.Tok != token.CONST
	case *ast.BinaryExpr:
		f.binary(n)
	case *ast.BlockStmt:
		f.statements(n.List)
	case *ast.CaseClause:
		f.statements(n.Body)
	case *ast.CommClause:
		f.statements(n.Body)
	case *ast.ReturnStmt:
		f.returned(n)
	}
	return true
}

func fixed(text string) func(int) string { return func(int) string { return text } }

func numbered(format string) func(int) string {
	return func(i int) string { return fmt.Sprintf(format, i) }
}

func (f *finder) binary(e *ast.BinaryExpr) {
	t := f.p.TypesInfo.Types[e]
	if t.Value != nil || t.Type == nil {
		return
	}
	a, b := f.source(e.X), f.source(e.Y)
	switch e.Op {
	case token.LSS, token.LEQ, token.GTR, token.GEQ:
		f.add(e, "negated", 0, fixed("(("), numbered(") != mutant(%d))"))
		if pure(e.X) && pure(e.Y) {
			f.add(e, "boundary moved", 1, fixed("(("), func(i int) string {
				return fmt.Sprintf(") != (mutant(%d) && (%s) == (%s)))", i, a, b)
			})
		}
	case token.EQL, token.NEQ:
		f.add(e, "negated", 0, fixed("(("), numbered(") != mutant(%d))"))
	case token.LAND:
		f.add(e, "or for and", 0, func(i int) string {
			return fmt.Sprintf("(mutant(%d) && ((%s) || (%s)) || !mutant(%d) && (", i, a, b, i)
		}, fixed("))"))
	case token.LOR:
		f.add(e, "and for or", 0, func(i int) string {
			return fmt.Sprintf("(mutant(%d) && ((%s) && (%s)) || !mutant(%d) && (", i, a, b, i)
		}, fixed("))"))
	case token.ADD, token.SUB, token.MUL, token.QUO:
		f.arithmetic(e, t.Type)
	}
}

func (f *finder) arithmetic(e *ast.BinaryExpr, t types.Type) {
	basic, ok := t.Underlying().(*types.Basic)
	if _, generic := types.Unalias(t).(*types.TypeParam); generic || !ok ||
		basic.Info()&(types.IsInteger|types.IsFloat) == 0 {
		return
	}
	s := f.add(e, "other arithmetic", 0, func(i int) string {
		return fmt.Sprintf("mutantMath(%d, '%s', ", i, e.Op)
	}, fixed(")"))
	s.operator, s.width = f.offset(e.OpPos), 1
}

// pure reports whether an expression can be evaluated twice.
func pure(e ast.Expr) bool {
	clean := true
	ast.Inspect(e, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			name, ok := n.Fun.(*ast.Ident)
			clean = clean && ok && (name.Name == "len" || name.Name == "cap")
		case *ast.FuncLit:
			clean = false
		case *ast.UnaryExpr:
			clean = clean && n.Op != token.ARROW
		}
		return clean
	})
	return clean
}

// kept are calls that are not left out: without them a test blocks instead of failing, or only the compiler is fooled.
var kept = []string{"Lock", "Unlock", "RLock", "RUnlock", "Done", "Close", "Stop", "panic", "cancel", "Helper", "close"}

func (f *finder) statements(list []ast.Stmt) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.ExprStmt:
			call, ok := s.X.(*ast.CallExpr)
			if !ok || slices.Contains(kept, called(call)) {
				continue
			}
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE || blank(s) {
				continue
			}
		case *ast.IncDecStmt:
		default:
			continue
		}
		f.add(s, "left out", 0, numbered("if !mutant(%d) { "), fixed(" }"))
	}
}

// called is the last part of the name of what is called.
func called(call *ast.CallExpr) string {
	switch fun := call.Fun.(type) {
	case *ast.Ident:
		return fun.Name
	case *ast.SelectorExpr:
		return fun.Sel.Name
	}
	return ""
}

// blank reports whether an assignment has no effect.
func blank(s *ast.AssignStmt) bool {
	for _, left := range s.Lhs {
		if name, ok := left.(*ast.Ident); !ok || name.Name != "_" {
			return false
		}
	}
	return true
}

func (f *finder) returned(s *ast.ReturnStmt) {
	if len(s.Results) == 0 {
		return
	}
	last := s.Results[len(s.Results)-1]
	t := f.p.TypesInfo.Types[last].Type
	if t == nil || !types.Identical(t, types.Universe.Lookup("error").Type()) {
		return
	}
	f.add(last, "no error", 2, numbered("mutantError(%d, "), fixed(")"))
}

// edit is text that replaces some of a file's bytes.
type edit struct {
	at, width int
	text      string
	closing   bool
	size      int // of the node: outer nodes open first and close last
	order     int
}

// rewritten gives each file with its mutants.
func rewritten(p *packages.Package, mutants []site) map[string][]byte {
	edits := map[string][]edit{}
	for i, m := range mutants {
		size := m.end - m.start
		edits[m.file] = append(edits[m.file],
			edit{at: m.start, text: m.before(i), size: size, order: m.order},
			edit{at: m.end, text: m.after(i), closing: true, size: size, order: m.order})
		if m.operator > 0 {
			edits[m.file] = append(edits[m.file], edit{at: m.operator, width: m.width, text: ","})
		}
	}
	files := map[string][]byte{}
	for file, list := range edits {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		slices.SortStableFunc(list, func(a, b edit) int {
			switch {
			case a.at != b.at:
				return a.at - b.at
			case a.closing && !b.closing:
				return -1
			case b.closing && !a.closing:
				return 1
			case a.closing:
				return cmp.Or(a.size-b.size, b.order-a.order)
			}
			return cmp.Or(b.size-a.size, a.order-b.order)
		})
		var out bytes.Buffer
		at := 0
		for _, e := range list {
			out.Write(text[at:e.at])
			out.WriteString(e.text)
			at = e.at + e.width
		}
		out.Write(text[at:])
		files[file] = out.Bytes()
	}
	return files
}
