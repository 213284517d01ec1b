package printable

import (
	"net/url"
	"strings"
)

// Word is an argument for a command line that users copy, as a POSIX shell reads it.
func Word(s string) string {
	if s != "" && strings.Trim(s, shellLetters) == "" {
		return s
	}

	// Escapes are not undone. What is to be found by a name with any has to be named in another way.
	return "'" + strings.ReplaceAll(Text(s), "'", `'\''`) + "'"
}

const shellLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._/:@+"

// Deletion is the command line that deletes an object of RBAC, such as a rolebinding. Its name may hold what no shell reads as it
// was written, and what is called by the escapes of that may be there, too: such an object is named by its address.
func Deletion(resource, namespace, name string) string {
	flag, folder := "", ""
	if namespace != "" {
		flag, folder = " -n "+namespace, "namespaces/"+namespace+"/"
	}

	if IsText(name) {
		return "kubectl delete " + resource + flag + " -- " + Word(name)
	}

	return "kubectl delete --raw " + Word("/apis/rbac.authorization.k8s.io/v1/"+folder+resource+"s/"+url.PathEscape(name))
}
