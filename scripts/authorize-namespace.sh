#!/bin/sh
# Authorizes a namespace to be manageable from another namespace, with kubectl alone. "ambit authorize" and "ambit revoke"
# do the same; a test compares what they grant.
#
# KUBECTL names the kubectl to use; KUBECONFIG the cluster, as always.
set -eu

LC_ALL=C
export LC_ALL

usage() {
	cat <<'USAGE'
authorize-namespace.sh - Authorize a namespace to be manageable from another namespace through the NamespaceScope operator

SYNTAX:
authorize-namespace.sh [namespace | default current namespace] [-to namespacename | default ibm-common-services] [-delete]
                       [-scope NAME] [-service-account NAME] [-grant-only] [-all] [--dry-run=client|server]

WHERE:
  namespace :    is the name of the namespace you wish to authorize. This namespace MUST exist;
                 by default the current namespace is assumed
  tonamespace :  is the name of the namespace that you want to authorize to manage artifacts in this namespace.
                 This namespace MUST exist. The default is ibm-common-services.
                 The NamespaceScope CR MUST be defined in this namespace: the one named namespacescope is used,
                 else the only one there, else the one that -scope says. The namespace becomes a member of it.
  -delete :      Removes the ability for the tonamespace to manage artifacts in the namespace.
  -scope :       is the name of the NamespaceScope CR.
  -service-account : is the account in tonamespace that is granted to; by default the one that the NamespaceScope
                 names, else ambit. It is made if it is missing.
  -grant-only :  leaves the NamespaceScope alone.
  -all :         grants everything in the namespace, and any rule for others, instead of the least that is needed.
  --dry-run :    client: only shows what would be granted. server: also asks the API server whether it would accept it.

Exit code: 0 done, 1 failed, 2 wrong usage.
USAGE
}

fail() { echo "error: $*" >&2; exit 1; }

misused() { echo "error: $*; see $0 -h" >&2; exit 2; }

KUBECTL=${KUBECTL:-kubectl}
namespace= to=ibm-common-services delete= scope= account= grant_only= all= dry=none

value() { [ "$2" -ge 2 ] || misused "$1 needs a value"; } # option, number of words left

while [ $# -gt 0 ]; do
	case $1 in
	-h | -help | --help) usage && exit 0 ;;
	-to | --to) value "$1" $#; to=$2; shift ;;
	-scope | --scope) value "$1" $#; scope=$2; shift ;;
	-service-account | --service-account) value "$1" $#; account=$2; shift ;;
	-delete | --delete) delete=yes ;;
	-grant-only | --grant-only) grant_only=yes ;;
	-all | --all) all=yes ;;
	--dry-run=*) dry=${1#--dry-run=} ;;
	-*) misused "unknown option $1" ;;
	"") misused "the name of the namespace is empty" ;;
	*) [ -z "$namespace" ] || misused "one namespace, not $namespace and $1"; namespace=$1 ;;
	esac
	shift
done

valid() { # what, name, further characters
	case $2 in "" | -* | *- | *[!a-z0-9"$3"-]*) misused "$1 is \"$2\", which is no valid name" ;; esac
}

case $dry in none | client | server) ;; *) misused "--dry-run is \"$dry\"; give client or server" ;; esac

command -v "$KUBECTL" >/dev/null 2>&1 || fail "$KUBECTL is not there; install kubectl, or set KUBECTL"

[ -n "$namespace" ] || namespace=$("$KUBECTL" config view --minify -o 'jsonpath={..namespace}' 2>/dev/null) || true
: "${namespace:=default}"

valid "the namespace" "$namespace" ""
valid "-to" "$to" ""
[ -z "$scope" ] || valid "-scope" "$scope" .
[ -z "$account" ] || valid "-service-account" "$account" .
[ "$namespace" != "$to" ] || misused "the namespace and -to are both $to; a namespace needs no consent for its own operators"

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM

# Runs kubectl and keeps what it says. When it fails, its complaint is in $tmp/err, in one line.
try() {
	"$KUBECTL" "$@" >"$tmp/out" 2>"$tmp/complaint" && return
	tr '\n' ' ' <"$tmp/complaint" | sed 's/^Error from server[^:]*: //; s/^error: //; s/ *$//' >"$tmp/err"
	return 1
}

refused() { # what was being done; the complaint is in $tmp/err
	next=
	! grep -qi forbidden "$tmp/complaint" || next="; let somebody run this who may"
	! grep -q 'not currently held' "$tmp/err" ||
		next="; nobody can grant what they do not hold: let somebody run this who does, such as a cluster administrator"
	fail "$1: $(cat "$tmp/err")$next"
}

missing() { grep -q '(NotFound)' "$tmp/complaint"; }
forbidden() { grep -q '(Forbidden)' "$tmp/complaint"; }

for name in "$namespace" "$to"; do
	if try get namespace "$name" -o 'jsonpath={.metadata.deletionTimestamp}'; then
		[ ! -s "$tmp/out" ] || fail "namespace $name is being deleted; wait until it is gone and create it again"
	elif missing; then
		fail "namespace $name does not exist; create it first, or correct the name"
	elif ! forbidden; then
		refused "looking for namespace $name"
	fi
done

nss=namespacescopes.operator.ibm.com

choose_scope() {
	if ! try get "$nss" -n "$to" -o 'go-template={{range .items}}{{.metadata.name}}{{"\n"}}{{end}}'; then
		! grep -q "doesn't have a resource type" "$tmp/err" || fail "the cluster does not know NamespaceScopes; install Ambit first"
		refused "listing the NamespaceScopes of namespace $to"
	fi
	names=$(tr '\n' ' ' <"$tmp/out" | sed 's/ $//')
	wanted=${scope:-namespacescope}
	case " $names " in
	*" $wanted "*) chosen=$wanted ;;
	"  ") fail "there is no NamespaceScope in namespace $to; create it first, or give -grant-only with -all or -delete" ;;
	*)
		[ -z "$scope" ] || fail "there is no NamespaceScope $scope in namespace $to; there is $names; give -scope NAME"
		case $names in
		*" "*) fail "there are several NamespaceScopes in namespace $to and none is called namespacescope; give -scope NAME with one of $names" ;;
		esac
		chosen=$names
		;;
	esac
	try get "$nss" "$chosen" -n "$to" -o 'jsonpath={.metadata.deletionTimestamp}' || refused "reading NamespaceScope $to/$chosen"
	[ ! -s "$tmp/out" ] || fail "the NamespaceScope is being deleted: $to/$chosen"
}

chosen=
[ -n "$grant_only" ] && [ -n "$all$delete" ] || choose_scope

# Prints the accounts, in $tmp/accounts, whose permissions the scope projects: those of workloads that carry all of its
# labels, and those that it lists, as far as they exist.
find_accounts() {
	try get "$nss" "$chosen" -n "$to" -o 'go-template={{range $k, $v := .spec.restartLabels}}{{$k}}={{$v}}{{"\n"}}{{end}}' ||
		refused "reading NamespaceScope $to/$chosen"
	[ -s "$tmp/out" ] || echo intent=projected >"$tmp/out"
	mv "$tmp/out" "$tmp/labels"
	try get "$nss" "$chosen" -n "$to" -o 'go-template={{range .spec.serviceAccountMembers}}{{.}}{{"\n"}}{{end}}' ||
		refused "reading NamespaceScope $to/$chosen"
	mv "$tmp/out" "$tmp/wanted"

	line='{{define "line"}}{{with .spec.serviceAccountName}}{{.}}{{else}}default{{end}}{{with .metadata}}{{range $k, $v := .labels}} {{$k}}={{$v}}{{end}}{{end}}{{"\n"}}{{end}}'
	for kind in pods deployments.apps statefulsets.apps daemonsets.apps jobs.batch cronjobs.batch; do
		case $kind in pods) template= ;; cronjobs.batch) template=spec.jobTemplate.spec.template ;; *) template=spec.template ;; esac
		read_home $kind "$line{{range .items}}{{template \"line\" .$template}}{{end}}"
		cat "$tmp/out" >>"$tmp/workloads"
	done

	awk 'NR == FNR { asked[$0]; next }
		{ carried = " "; for (i = 2; i <= NF; i++) carried = carried $i " "
		  for (l in asked) if (index(carried, " " l " ") == 0) next
		  print $1 }' "$tmp/labels" "$tmp/workloads" >>"$tmp/wanted"
	sort -u "$tmp/wanted" >"$tmp/wanted.sorted"

	read_home serviceaccounts '{{range .items}}{{.metadata.name}}{{"\n"}}{{end}}'
	sort -u "$tmp/out" >"$tmp/existing"
	comm -12 "$tmp/wanted.sorted" "$tmp/existing" >"$tmp/accounts"
	gone=$(comm -23 "$tmp/wanted.sorted" "$tmp/existing" | tr '\n' ' ')
	[ -z "$gone" ] || echo "# Note: not projected, because the service account does not exist: $gone; run this again when it does"
}

read_home() { # resource, template
	try get "$1" -n "$to" -o "go-template=$2" && return
	forbidden && fail "what the scope needs cannot be told, because you may not list $1 in namespace $to;" \
		"let somebody run this who may, such as an administrator of both namespaces"
	refused "listing the $1 of namespace $to"
}

# A copy that Ambit projected is never a source.
source_only='{{$p := ""}}{{with .metadata.labels}}{{with index . "ambit.dev/scope"}}{{$p = .}}{{end}}{{end}}{{with .metadata.annotations}}{{with index . "ambit.dev/owner"}}{{$p = .}}{{end}}{{end}}{{if not $p}}'

# Writes the least rules into $tmp/rules: the roles whose bindings name an account of the scope, and bind for ClusterRoles.
find_rules() {
	find_accounts

	read_home rolebindings.rbac.authorization.k8s.io '{{range .items}}'"$source_only"'{{$b := .}}{{range .subjects}}{{printf "%s\t%q" $b.roleRef.kind $b.roleRef.name}}{{"\t"}}{{.kind}}{{"\t"}}{{with .namespace}}{{.}}{{end}}{{"\t"}}{{.name}}{{"\n"}}{{end}}{{end}}{{end}}'
	awk -F '\t' -v home="$to" '
		FILENAME == ARGV[1] { account[$0]; some = 1; next }
		{ name = "" }
		$3 == "ServiceAccount" && $4 == home { name = $5 }
		$3 == "User" && index($5, "system:serviceaccount:" home ":") == 1 { name = substr($5, length("system:serviceaccount:" home ":") + 1) }
		(name in account) || (some && $3 == "Group" && ($5 == "system:serviceaccounts" || $5 == "system:serviceaccounts:" home)) { print $1 "\t" $2 }
		' "$tmp/accounts" "$tmp/out" | sort -u >"$tmp/referred"

	q='{{define "q"}}{{range $i, $v := .}}{{if $i}},{{end}}{{printf "%q" $v}}{{end}}{{end}}'
	read_home roles.rbac.authorization.k8s.io "$q"'{{range .items}}'"$source_only"'{{$n := .metadata.name}}{{printf "%q" $n}}{{"\n"}}{{range .rules}}{{printf "%q" $n}}{{"\t"}}{{"{"}}{{with .apiGroups}}"apiGroups":[{{template "q" .}}],{{end}}{{with .resources}}"resources":[{{template "q" .}}],{{end}}{{with .resourceNames}}"resourceNames":[{{template "q" .}}],{{end}}"verbs":[{{template "q" .verbs}}]{{"}\n"}}{{end}}{{end}}{{end}}'
	mv "$tmp/out" "$tmp/roles"

	{
		echo '{"apiGroups":["rbac.authorization.k8s.io"],"resources":["rolebindings","roles"],"verbs":["create","delete","get","list","patch","update","watch"]}'
		awk -F '\t' 'FILENAME == ARGV[1] { if ($1 == "Role") wanted[$2]; next } NF > 1 && ($1 in wanted)' "$tmp/referred" "$tmp/roles" |
			sort -s -t "$(printf '\t')" -k 1,1 | cut -f 2-
	} | awk '!seen[$0]++' >"$tmp/rules"
	awk -F '\t' 'FILENAME == ARGV[1] { exists[$1]; next } $1 == "Role" && !($2 in exists) { print "Role " $2 }' \
		"$tmp/roles" "$tmp/referred" >"$tmp/dangling"

	bound=
	awk -F '\t' '$1 == "ClusterRole" { print $2 }' "$tmp/referred" >"$tmp/clusterroles"
	while IFS= read -r quoted; do
		name=${quoted#\"}
		name=${name%\"}
		# Where the caller may not look, it counts as existing: the right to bind what is not there gives nothing.
		if ! try get clusterroles.rbac.authorization.k8s.io -o name -- "$name" </dev/null && missing; then
			echo "ClusterRole $quoted" >>"$tmp/dangling"
		else
			bound=${bound:+$bound,}$quoted
		fi
	done <"$tmp/clusterroles"
	[ -z "$bound" ] ||
		echo '{"apiGroups":["rbac.authorization.k8s.io"],"resources":["clusterroles"],"resourceNames":['"$bound"'],"verbs":["bind"]}' >>"$tmp/rules"
	[ ! -s "$tmp/dangling" ] ||
		echo "# Note: not granted, because the role does not exist: $(tr '\n' ' ' <"$tmp/dangling"); run this again when it does"
}

wide_rules() {
	echo '{"apiGroups":["*"],"resources":["*"],"verbs":["create","delete","deletecollection","get","list","patch","update","watch"]}'
	echo '{"apiGroups":["rbac.authorization.k8s.io"],"resources":["roles"],"verbs":["bind","escalate"]}'
}

# The scope's name, where one is known, is part of the name: scopes of one namespace have grants of their own.
granted_scope=${chosen:-$scope}
grant=ambit-authorized-from-$to${granted_scope:+.$granted_scope}

object() { # kind
	use="write roles and rolebindings in this namespace"
	[ -z "$granted_scope" ] || use="write here what NamespaceScope $to/$granted_scope projects"
	cat <<OBJECT
---
apiVersion: rbac.authorization.k8s.io/v1
kind: $1
metadata:
  name: $grant
  namespace: "$namespace"
  labels: {ambit.dev/authorized-for: "$to", app.kubernetes.io/managed-by: ambit-authorize}
  annotations:
    ambit.dev/authorized-use: service account $to/$account may $use
OBJECT
	[ -z "$granted_scope" ] || echo "    ambit.dev/authorized-scope: \"$granted_scope\""
}

make_manifests() {
	{ object Role; echo "rules:"; sed 's/^/- /' "$tmp/rules"; } >"$tmp/role.yaml"
	{
		object RoleBinding
		echo "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: $grant}"
		echo "subjects:"
		echo "- {kind: ServiceAccount, name: \"$account\", namespace: \"$to\"}"
	} >"$tmp/binding.yaml"
}

# Something that is not a grant and has the name of one is left alone.
must_be_ours() {
	for kind in role rolebinding; do
		if try get $kind.rbac.authorization.k8s.io "$grant" -n "$namespace" -o 'go-template={{with .metadata.labels}}{{index . "app.kubernetes.io/managed-by"}}/{{index . "ambit.dev/authorized-for"}}{{end}}'; then
			[ "$(cat "$tmp/out")" = "ambit-authorize/$to" ] ||
				fail "$kind $grant in namespace $namespace is not a grant to $to, so it is left alone; rename or delete it"
		elif ! missing; then
			refused "looking for $kind $grant in namespace $namespace"
		fi
	done
}

# Adds the namespace to the scope's members or takes it out; $1 is add or remove, $2 none or server. The resource version
# goes along: the list belongs to whoever wrote it.
change_members() {
	for attempt in 1 2 3 4 5; do
		try get "$nss" "$chosen" -n "$to" -o 'go-template={{.metadata.resourceVersion}}{{"\n"}}{{range .spec.namespaceMembers}}{{.}}{{"\n"}}{{end}}' ||
			refused "reading NamespaceScope $to/$chosen"
		version=$(head -n 1 "$tmp/out")
		sed 1d "$tmp/out" >"$tmp/members"
		if grep -qx -- "$namespace" "$tmp/members"; then
			[ "$1" = remove ] || return 0
			grep -vx -- "$namespace" "$tmp/members" >"$tmp/members.new" || true
		else
			[ "$1" = add ] || return 0
			{ cat "$tmp/members"; echo "$namespace"; } >"$tmp/members.new"
		fi
		list=$(awk '{ printf "%s\"%s\"", sep, $0; sep = "," }' "$tmp/members.new")
		if try patch "$nss" "$chosen" -n "$to" --type=merge --field-manager=ambit-authorize --dry-run="$2" \
			-p '{"metadata":{"resourceVersion":"'"$version"'"},"spec":{"namespaceMembers":['"$list"']}}'; then
			return 0
		fi
		grep -q '(Conflict)' "$tmp/complaint" || break
		sleep "$attempt"
	done
	! forbidden || fail "changing the members of NamespaceScope $to/$chosen: $(cat "$tmp/err"); let somebody run this who may," \
		"or leave scopes alone with -grant-only"
	refused "changing the members of NamespaceScope $to/$chosen"
}

apply() { # none or server, role or binding
	try apply --server-side --force-conflicts --field-manager=ambit-authorize --validate=false --dry-run="$1" -f "$tmp/$2.yaml"
}

apply_grant() { # none or server
	if ! try get serviceaccount "$account" -n "$to" -o name && ! forbidden; then
		missing || refused "looking for service account $to/$account"
		echo '{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"'"$account"'","namespace":"'"$to"'",' \
			'"labels":{"app.kubernetes.io/managed-by":"ambit-authorize"}}}' >"$tmp/account.json"
		try create --field-manager=ambit-authorize --validate=false --dry-run="$1" -f "$tmp/account.json" ||
			refused "making service account $to/$account"
	fi
	apply "$1" role || refused "granting Role $grant in namespace $namespace"
	# In a dry run the Role is not there to be bound, which is told after everything else was checked.
	apply "$1" binding || { [ "$1" = server ] && missing; } ||
		refused "granting RoleBinding $grant in namespace $namespace"
	[ -n "$grant_only" ] || change_members add "$1"
}

authorize() {
	if [ -z "$account" ] && [ -n "$chosen" ]; then
		try get "$nss" "$chosen" -n "$to" -o 'go-template={{with .spec.serviceAccountName}}{{.}}{{end}}' ||
			refused "reading NamespaceScope $to/$chosen"
		account=$(cat "$tmp/out")
	fi
	: "${account:=ambit}"
	if [ -n "$all" ]; then wide_rules >"$tmp/rules"; else find_rules; fi
	make_manifests
	cat "$tmp/role.yaml" "$tmp/binding.yaml"
	echo "# Service account $account of $to may, in namespace $namespace only, do what the rules above say."
	must_be_ours
	[ "$dry" != client ] || { echo "# Nothing was changed: this was a dry run by the client."; return; }
	apply_grant server
	[ "$dry" != server ] || { echo "# Nothing was changed: this was a dry run by the server, which would accept it."; return; }
	apply_grant none
	[ -n "$grant_only" ] || { echo "# Granted. $namespace is a member of NamespaceScope $to/$chosen."; return; }
	echo "# Granted. No scope was changed."
}

# Writes the grants that are taken back into $tmp/grants, bindings first: "kind name" a line. Those of other scopes stay.
find_grants() {
	: >"$tmp/grants"
	for kind in rolebinding role; do
		try get $kind.rbac.authorization.k8s.io -n "$namespace" -l "ambit.dev/authorized-for=$to,app.kubernetes.io/managed-by=ambit-authorize" -o \
			'go-template={{range .items}}{{.metadata.name}} {{with .metadata.annotations}}{{with index . "ambit.dev/authorized-scope"}}{{.}}{{end}}{{end}}{{"\n"}}{{end}}' ||
			refused "listing the roles and rolebindings of namespace $namespace"
		while read -r name of; do
			if [ -z "$granted_scope" ] || [ -z "$of" ] || [ "$of" = "$granted_scope" ]; then
				echo "$kind $name" >>"$tmp/grants"
			elif [ $kind = role ]; then
				echo "Note: the grant for scope $of stays; to take it back: $0 $namespace -to $to -delete -scope $of"
			fi
		done <"$tmp/out"
	done
}

take_back() { # none or server
	while read -r kind name; do
		try delete "$kind.rbac.authorization.k8s.io" "$name" -n "$namespace" --ignore-not-found --dry-run="$1" </dev/null ||
			refused "taking back $kind $name in namespace $namespace"
		[ "$1" = server ] || echo "$kind $name in namespace $namespace: taken back"
	done <"$tmp/grants"
}

count_projected() {
	try get roles.rbac.authorization.k8s.io,rolebindings.rbac.authorization.k8s.io -n "$namespace" -o \
		'go-template={{range .items}}{{with .metadata.annotations}}{{with index . "ambit.dev/owner"}}{{.}}{{"\n"}}{{end}}{{end}}{{end}}' ||
		refused "listing the roles and rolebindings of namespace $namespace"
	grep -cx "NamespaceScope/$to/$chosen" "$tmp/out" || true
}

revoke() {
	find_grants
	if [ "$dry" = client ]; then
		sed "s/\$/ in namespace $namespace: would be taken back/" "$tmp/grants"
		echo "Nothing was changed: this was a dry run by the client."
		return
	fi
	[ -n "$grant_only" ] || change_members remove server
	take_back server
	[ "$dry" != server ] || { echo "Nothing was changed: this was a dry run by the server, which would accept it."; return; }
	left=0
	if [ -z "$grant_only" ]; then
		change_members remove none
		echo "NamespaceScope $to/$chosen: $namespace is a member no longer"
		# As long as something projected is there, the manager needs the grant to take it away.
		for _ in 1 2 3 4 5 6 7 8 9 10; do
			left=$(count_projected)
			[ "$left" != 0 ] || break
			sleep 1
		done
	fi
	[ -s "$tmp/grants" ] || echo "Nothing was granted to $to in namespace $namespace."
	take_back none
	[ "$left" = 0 ] || fail "the grant is taken back, but $left objects that NamespaceScope $to/$chosen projected are still in" \
		"namespace $namespace; is Ambit running? To see them: kubectl get roles,rolebindings -n $namespace -l ambit.dev/scope"
	echo "Done: $namespace consents to nothing of this any more."
}

if [ -n "$delete" ]; then revoke; else authorize; fi
