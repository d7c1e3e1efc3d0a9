// Package source reads the Go files of this module without building them, so
// that what looks at all of them sees every build tag and system.
package source

import (
	"errors"
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// File is one Go file.
type File struct {
	Path string // from the root, with slashes
	Test bool
	AST  *ast.File
}

// Dir is the folder of the file from the root, with slashes; "." is the root.
func (f File) Dir() string { return path.Dir(f.Path) }

// Needs says whether a build constraint keeps the file out of builds without
// the tag.
func (f File) Needs(tag string) bool {
	for _, group := range f.AST.Comments {
		for _, comment := range group.List {
			if expr, err := constraint.Parse(comment.Text); err == nil && comment.Pos() < f.AST.Package {
				return expr.Eval(func(t string) bool { return t == tag }) && !expr.Eval(func(string) bool { return false })
			}
		}
	}
	return false
}

// Functions are the names of the file's functions that begin with a prefix,
// methods left out.
func (f File) Functions(prefix string) []string {
	var names []string
	for _, decl := range f.AST.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, prefix) {
			names = append(names, fn.Name.Name)
		}
	}
	return names
}

// Root finds the module's root above the working directory.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no go.mod in or above the working directory")
		}
		dir = parent
	}
}

// Files parses the module's files in the order of their paths. Folders that the
// go command ignores, and those of other modules, are left out.
func Files(root string) ([]File, error) {
	var files []File
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if rel != "." && foreign(name) {
				return fs.SkipDir
			}
			return nil
		}
		if path.Ext(name) != ".go" {
			return nil
		}
		tree, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		files = append(files, File{Path: filepath.ToSlash(rel), Test: strings.HasSuffix(name, "_test.go"), AST: tree})
		return err
	})
	return files, err
}

// foreign says whether a folder holds no package of this module.
func foreign(dir string) bool {
	base := filepath.Base(dir)
	if strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") || base == "testdata" || base == "node_modules" {
		return true
	}
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}
