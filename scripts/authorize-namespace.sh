#!/bin/sh
# Authorizes a namespace to be manageable from another namespace, with kubectl alone. "ambit authorize" and "ambit revoke"
# do the same; a test compares what they grant.
#
# KUBECTL names the kubectl to use; KUBECONFIG the cluster, as always.
#
# The parts: what is asked; talking to the cluster; which scope; what it needs; the grant; granting; taking back.
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
                 Where both namespaces are the same, this grants what the NamespaceScope needs in its own namespace: to write
                 its list of namespaces, to inject the list where the NamespaceScope says so, and to restart the operators
                 that read it.
  -delete :      Removes the ability for the tonamespace to manage artifacts in the namespace.
  -scope :       is the name of the NamespaceScope CR. Where two groups have one of that name, it is
                 operator.ibm.com/NAME or namespacescope.ibm.com/NAME.
  -service-account : is the account in tonamespace that is granted to; by default the one that the NamespaceScope
                 names, else ambit. It is made if it is missing.
  -grant-only :  leaves the NamespaceScope alone; grants, or takes back, in namespace only.
  -all :         grants everything in the namespace, and any rule for others, instead of the least that is needed.
  --dry-run :    client: only shows what would be granted. server: also asks the API server whether it would accept it.

Exit code: 0 done, 1 failed, 2 wrong usage.
USAGE
}

### What is asked

usual=operator.ibm.com older=namespacescope.ibm.com # the two groups of NamespaceScopes

println() { printf '%s\n' "$*"; } # Unlike echo it takes a backslash for one.

fail() { println "error: $*" >&2; exit 1; }

misused() { println "error: $*; see $0 -h" >&2; exit 2; }

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

only= # the group of the scope, where it is said
case $scope in
$usual/* | $older/*) only=${scope%%/*} scope=${scope#*/} && valid "-scope" "$scope" . ;;
*/*) misused "-scope: \"${scope%%/*}\" is no group of NamespaceScopes; there is $usual and $older" ;;
esac
case $dry in none | client | server) ;; *) misused "--dry-run is \"$dry\"; give client or server" ;; esac

command -v "$KUBECTL" >/dev/null 2>&1 || fail "$KUBECTL is not there; install kubectl, or set KUBECTL"

[ -n "$namespace" ] || namespace=$("$KUBECTL" config view --minify -o 'jsonpath={..namespace}' 2>/dev/null) || true
: "${namespace:=default}"

valid "the namespace" "$namespace" ""
valid "-to" "$to" ""
[ -z "$scope" ] || valid "-scope" "$scope" .
[ -z "$account" ] || valid "-service-account" "$account" .
at_home=
[ "$namespace" != "$to" ] || at_home=yes
[ -z "$at_home$all" ] || [ "$at_home$all" = yes ] ||
	misused "-all is for other namespaces; what a scope needs in its own is the same for every scope"

### Talking to the cluster

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM

# Names of roles, rules and subjects, and annotations may hold anything, line feeds and escape codes included. So none of them is
# taken over as it is. Templates write them in hexadecimal digits, by which they are compared and sorted, and in quotes, which is
# how they are printed and how YAML takes them: in ASCII, without a tab or a line feed, as Go quotes. Tabs part the fields.
tab=$(printf '\t')
both='{{define "both"}}{{printf "%x\t%+q" . .}}{{end}}'

hex() { printf %s "$1" | od -An -v -tx1 | tr -d ' \n'; }

plain() { sed 's/^"\([A-Za-z0-9._:/*@+~-]*\)"$/\1/'; } # Takes quotes off where they are of no use.

# In one line, and what is not printable in hexadecimal digits.
line() {
	od -An -v -tu1 | awk '{ for (i = 1; i <= NF; i++)
		if ($i >= 32 && $i < 127) printf "%c", $i + 0; else if ($i == 9 || $i == 10) printf " "; else printf "\\x%02x", $i }'
}

# Kinds are named with their versions. Without one, kubectl asks the API server for all its kinds each time, since it takes the first
# part of the group for a version, which there is not.

# Runs kubectl and keeps what it says. When it fails, its complaint is in $tmp/err, in one line.
try() {
	"$KUBECTL" "$@" >"$tmp/out" 2>"$tmp/complaint" && return
	line <"$tmp/complaint" | sed 's/^Error from server[^:]*: //; s/^error: //; s/ *$//' >"$tmp/err"
	return 1
}

hint= # what else the caller can do about a refusal
refused() { # what was being done; the complaint is in $tmp/err
	next=
	! grep -qi forbidden "$tmp/complaint" || next="; let somebody run this who may"
	! grep -q 'not currently held' "$tmp/err" ||
		next="; nobody can grant what they do not hold: let somebody run this who does, such as a cluster administrator"
	! unanswered || next="; run this again"
	fail "$1: $(cat "$tmp/err")$next$hint"
}

complains() { sed -n '/^Error from server/{p;q;}' "$tmp/complaint" | grep -q "^Error from server ($1)"; } # reason
missing() { complains NotFound; }
forbidden() { complains Forbidden; }
unanswered() { complains Timeout || grep -q 'EOF$\|connection reset\|was refused - did you\|i/o timeout' "$tmp/complaint"; }

# What was granted in a namespace that is being deleted holds until it is gone, and may be what keeps the namespace. Grants to a
# namespace outlive it, and serve whoever creates it again.
places="$namespace $to"
[ -z "$delete" ] || [ -z "$grant_only" ] || places=$namespace
for name in $places; do
	if try get namespace "$name" -o 'jsonpath={.metadata.deletionTimestamp}'; then
		[ -n "$delete" ] || [ ! -s "$tmp/out" ] || fail "namespace $name is being deleted; wait until it is gone and create it again"
	elif missing; then
		next="create it first, or correct the name"
		[ -z "$delete" ] || next="take back what it was granted with -grant-only, or correct the name"
		[ -z "$delete" ] || [ "$name" != "$namespace" ] || next="so nothing is granted there; correct the name"
		fail "namespace $name does not exist; $next"
	elif ! forbidden; then
		refused "looking for namespace $name"
	fi
done

### Which scope

short() { [ "$1" = $usual ] && echo "$2" || echo "$1/$2"; } # group, name: as -scope names the scope
scopes() { [ "$1" = $usual ] && echo namespacescopes.v1.$usual || echo namespacescopes.v1alpha1.$older; } # group
title() { [ "$1" = $usual ] && echo "NamespaceScope $to/$2" || echo "NamespaceScope $to/$2 of $1"; }

# Lists the scopes into $tmp/scopes, "group name" a line. A group that the cluster does not know has none.
list_scopes() {
	known=
	: >"$tmp/scopes"
	for group in ${only:-$usual $older}; do
		if try get "$(scopes "$group")" -n "$to" -o 'go-template={{range .items}}'"$group"' {{.metadata.name}}{{"\n"}}{{end}}'; then
			known=yes
			cat "$tmp/out" >>"$tmp/scopes"
		elif forbidden; then
			fail "you may not list the NamespaceScopes of namespace $to in group $group; ask its administrator for the role view," \
				"name the scope and the other group: -scope GROUP/NAME, or give -grant-only with -all or -delete"
		elif ! grep -q "doesn't have a resource type" "$tmp/err"; then
			refused "listing the NamespaceScopes of namespace $to"
		fi
	done
	[ -n "$known" ] || fail "the cluster does not know NamespaceScopes; install Ambit first"
}

choose_scope() {
	list_scopes
	names=$(while read -r group name; do
		case $(awk -v name="$name" '$2 == name { n++ } END { print n }' "$tmp/scopes") in
		1) short "$group" "$name" ;;
		*) echo "$group/$name" ;;
		esac
	done <"$tmp/scopes" | sort | tr '\n' ' ' | sed 's/ $//')
	awk -v name="${scope:-namespacescope}" '$2 == name' "$tmp/scopes" >"$tmp/meant"
	case $(awk 'END { print NR }' "$tmp/meant"),$names in
	1,*) ;;
	2,*) fail "there are two NamespaceScopes called ${scope:-namespacescope} in namespace $to;" \
		"choose one of $(tr ' ' / <"$tmp/meant" | paste -s -d ' ' - | sed 's/ / and /'); give -scope GROUP/NAME" ;;
	0,) fail "there is no NamespaceScope${only:+ of $only} in namespace $to; create it first, or give -grant-only with -all or -delete" ;;
	0,*)
		[ -z "$scope" ] || fail "there is no NamespaceScope $(short "${only:-$usual}" "$scope") in namespace $to; there is $names; give -scope NAME"
		case $names in
		*" "*) fail "there are several NamespaceScopes in namespace $to and none is called namespacescope; give -scope NAME with one of $names" ;;
		esac
		cp "$tmp/scopes" "$tmp/meant"
		;;
	esac
	read -r chosen_group chosen <"$tmp/meant"
	read_scope
	[ -z "$(says deleting)" ] || [ -n "$grant_only$delete" ] || [ "$namespace" = "$to" ] ||
		fail "$title is being deleted, and takes no members; to let it remove what it projected, give -grant-only"
}

# Keeps what the scope says in $tmp/spec, a word and its value a line. The two groups call some fields differently.
read_scope() {
	nss=$(scopes "$chosen_group")
	title=$(title "$chosen_group" "$chosen")
	end='{{"\n"}}{{end}}'
	try get "$nss" "$chosen" -n "$to" -o "go-template=$both"'{{with .metadata.deletionTimestamp}}deleting {{.}}'"$end"'
{{with .status}}{{if or .patchedCSVList .patchedWebhookList}}csvs yes'"$end"'{{end}}{{with .spec}}
{{with .serviceAccountName}}delegate {{printf "%+q" .}}'"$end"'{{if .manualManagement}}manual yes'"$end"'
{{with .configmapName}}list {{printf "%+q" .}}'"$end"'{{with index . "configmap-name"}}list {{printf "%+q" .}}'"$end"'
{{range $k, $v := .}}{{if eq $k "csvInjector"}}{{if ne (printf "%v" $v.enable) "false"}}csvs yes'"$end"'{{end}}{{end}}
{{range $k, $v := .restartLabels}}label {{printf "%x=%x" $k $v}}'"$end"'
{{range .serviceAccountMembers}}account {{template "both" .}}'"$end"'{{range index . "projected-serviceaccounts"}}account {{template "both" .}}'"$end"'{{end}}' ||
		refused "reading $title"
	mv "$tmp/out" "$tmp/spec"
	# The account that the scope writes as; it is Ambit itself where there is none.
	delegate=$(says delegate | plain)
	[ -z "$delegate" ] || valid "spec.serviceAccountName of $title" "$delegate" .
	[ -n "$delegate" ] || [ -z "$(says manual)" ] || delegate=ambit
}

says() { sed -n "s/^$1 //p" "$tmp/spec"; } # word

chosen= chosen_group= delegate=
[ -n "$grant_only" ] && [ -n "$all$delete" ] || choose_scope

### What it needs

# Writes the accounts whose permissions the scope projects into $tmp/accounts, as far as they exist: those that it lists, and
# those of workloads that carry all of its labels. A scope of the older group has all accounts, or only those that it lists.
find_accounts() {
	# A scope that is being deleted projects nothing any more.
	: >"$tmp/accounts"
	[ -z "$(says deleting)" ] || return 0
	read_home serviceaccounts "$both"'{{range .items}}{{template "both" .metadata.name}}{{"\n"}}{{end}}'
	sort -u "$tmp/out" >"$tmp/existing"
	says account >"$tmp/wanted"
	if [ "$chosen_group" = $usual ]; then
		find_operands
	elif [ ! -s "$tmp/wanted" ]; then
		cp "$tmp/existing" "$tmp/wanted"
	fi
	sort -u "$tmp/wanted" >"$tmp/wanted.sorted"
	comm -12 "$tmp/wanted.sorted" "$tmp/existing" >"$tmp/accounts"
	gone=$(comm -23 "$tmp/wanted.sorted" "$tmp/existing" | cut -f 2 | plain | tr '\n' ' ')
	[ -z "$gone" ] || println "# Note: not projected, because the service account does not exist: $gone; run this again when it does"
}

find_operands() {
	says label >"$tmp/labels"
	[ -s "$tmp/labels" ] || println "$(hex intent)=$(hex projected)" >"$tmp/labels"
	read_home pods,deployments.v1.apps,statefulsets.v1.apps,daemonsets.v1.apps,replicasets.v1.apps,jobs.v1.batch,cronjobs.v1.batch "$both"'{{define "line"}}{{with .metadata}}{{range $k, $v := .labels}} {{printf "%x=%x" $k $v}}{{end}}{{end}}{{"\t"}}{{with .spec.serviceAccountName}}{{template "both" .}}{{else}}{{template "both" "default"}}{{end}}{{"\n"}}{{end}}{{range .items}}
{{- if eq .kind "Pod"}}{{template "line" .}}{{else if eq .kind "ReplicaSet"}}{{$owned := false}}{{range .metadata.ownerReferences}}{{if .controller}}{{$owned = true}}{{end}}{{end}}{{if not $owned}}{{template "line" .spec.template}}{{end}}{{else if eq .kind "CronJob"}}{{template "line" .spec.jobTemplate.spec.template}}{{else}}{{template "line" .spec.template}}{{end}}{{end}}'
	awk -F '\t' 'NR == FNR { asked[$0]; next }
		{ for (l in asked) if (index($1 " ", " " l " ") == 0) next
		  print $2 "\t" $3 }' "$tmp/labels" "$tmp/out" >>"$tmp/wanted"
}

read_home() { # resources, template
	try get "$1" -n "$to" -o "go-template=$2" && return
	forbidden && fail "what the scope needs is unknown, because you may not list" \
		"$(sed -n 's/.*(Forbidden): \([^ ]*\) is forbidden.*/\1/p' "$tmp/complaint" | paste -s -d , -) in namespace $to;" \
		"let somebody run this who may, such as an administrator of both namespaces"
	refused "listing the $1 of namespace $to"
}

# Neither a copy that Ambit or IBM's operator projected nor a consent is a source. What Ambit made for a ClusterServiceVersion beside it
# is: its owner begins so.
installed="ClusterServiceVersion/$to/"
source_only='{{$p := ""}}{{$o := ""}}{{$m := ""}}{{$ibm := ""}}{{with .metadata.annotations}}{{with index . "ambit.dev/owner"}}{{$o = .}}{{$p = .}}{{end}}{{end}}{{with .metadata.labels}}{{with index . "ambit.dev/scope"}}{{$p = .}}{{end}}{{with index . "app.kubernetes.io/managed-by"}}{{$m = .}}{{end}}{{with index . "namespace-scope-configmap"}}{{$ibm = .}}{{end}}{{end}}{{if eq (printf "%.'${#installed}'s" $o) "'$installed'"}}{{$p = ""}}{{end}}{{if eq $m "ambit-authorize"}}{{$p = $m}}{{end}}{{if and $ibm (eq $m "ibm-namespace-scope-operator")}}{{$p = $m}}{{end}}{{if not $p}}'
# Nor is a binding that is meant for the operator's own namespace.
projected_only='{{$d := ""}}{{with .metadata.annotations}}{{with index . "ambit.dev/project"}}{{$d = .}}{{end}}{{end}}{{if ne $d "disabled"}}'

# Writes the least rules into $tmp/rules: the roles whose bindings name an account of the scope, and bind for ClusterRoles.
find_rules() {
	find_accounts

	read_home rolebindings.v1.rbac.authorization.k8s.io "$both"'{{range .items}}'"$source_only$projected_only"'{{$b := .}}{{range .subjects}}{{$b.roleRef.kind}}{{"\t"}}{{template "both" $b.roleRef.name}}{{"\t"}}{{.kind}}{{"\t"}}{{with .namespace}}{{printf "%x" .}}{{end}}{{"\t"}}{{printf "%x" .name}}{{"\n"}}{{end}}{{end}}{{end}}{{end}}'
	awk -F '\t' -v home="$(hex "$to")" -v user="$(hex "system:serviceaccount:$to:")" \
		-v everybody="$(hex system:serviceaccounts)" -v here="$(hex "system:serviceaccounts:$to")" '
		FILENAME == ARGV[1] { account[$1]; some = 1; next }
		{ name = "" }
		$4 == "ServiceAccount" && ($5 == home || $5 == "") { name = $6 }
		$4 == "User" && index($6, user) == 1 { name = substr($6, length(user) + 1) }
		(name in account) || (some && $4 == "Group" && ($6 == everybody || $6 == here)) { print $1 "\t" $2 "\t" $3 }
		' "$tmp/accounts" "$tmp/out" | sort -u >"$tmp/referred"

	q='{{define "q"}}{{range $i, $v := .}}{{if $i}},{{end}}{{printf "%+q" $v}}{{end}}{{end}}'
	read_home roles.v1.rbac.authorization.k8s.io "$q"'{{range .items}}'"$source_only"'{{$n := .metadata.name}}{{printf "%x" $n}}{{"\n"}}{{range .rules}}{{printf "%x" $n}}{{"\t"}}{{"{"}}{{with .apiGroups}}"apiGroups":[{{template "q" .}}],{{end}}{{with .resources}}"resources":[{{template "q" .}}],{{end}}{{with .resourceNames}}"resourceNames":[{{template "q" .}}],{{end}}"verbs":[{{template "q" .verbs}}]{{"}\n"}}{{end}}{{end}}{{end}}'
	mv "$tmp/out" "$tmp/roles"

	{
		echo '{"apiGroups":["rbac.authorization.k8s.io"],"resources":["rolebindings","roles"],"verbs":["create","delete","get","list","patch","watch"]}'
		awk -F '\t' 'FILENAME == ARGV[1] { if ($1 == "Role") wanted[$2]; next } NF > 1 && ($1 in wanted)' "$tmp/referred" "$tmp/roles" |
			sort -s -t "$tab" -k 1,1 | cut -f 2-
	} | awk '!seen[$0]++' >"$tmp/rules"
	awk -F '\t' 'FILENAME == ARGV[1] { exists[$1]; next } $1 == "Role" && !($2 in exists) { print $3 }' \
		"$tmp/roles" "$tmp/referred" | plain | sed 's/^/Role /' >"$tmp/dangling"

	bound=
	awk -F '\t' '$1 == "ClusterRole" { print $3 }' "$tmp/referred" >"$tmp/clusterroles"
	while IFS= read -r quoted; do
		rbac_object ClusterRole "$quoted" >"$tmp/clusterrole.yaml"
		# Where the caller may not look, it counts as existing: the right to bind what is not there gives nothing.
		if ! try get -f "$tmp/clusterrole.yaml" -o name </dev/null && missing; then
			println "$quoted" | plain | sed 's/^/ClusterRole /' >>"$tmp/dangling"
		else
			bound=${bound:+$bound,}$quoted
		fi
	done <"$tmp/clusterroles"
	[ -z "$bound" ] ||
		println '{"apiGroups":["rbac.authorization.k8s.io"],"resources":["clusterroles"],"resourceNames":['"$bound"'],"verbs":["bind"]}' >>"$tmp/rules"
	[ ! -s "$tmp/dangling" ] ||
		println "# Note: not granted, because the role does not exist: $(tr '\n' ' ' <"$tmp/dangling"); run this again when it does"
}

# kubectl takes names that begin with a dash or hold anything from files only.
rbac_object() { # kind, name in quotes, namespace
	printf 'apiVersion: rbac.authorization.k8s.io/v1\nkind: %s\nmetadata: {name: %s%s}\n' "$1" "$2" "${3:+, namespace: \"$3\"}"
}

wide_rules() {
	echo '{"apiGroups":["*"],"resources":["*"],"verbs":["create","delete","deletecollection","get","list","patch","update","watch"]}'
	echo '{"apiGroups":["rbac.authorization.k8s.io"],"resources":["roles"],"verbs":["bind","escalate"]}'
}

home_rules() {
	list=$(says list)
	println '{"apiGroups":[""],"resources":["configmaps"],"resourceNames":['"${list:-\"namespace-scope\"}"'],"verbs":["create","delete","patch"]}'
	echo '{"apiGroups":[""],"resources":["pods/eviction"],"verbs":["create"]}'
	echo '{"apiGroups":["apps"],"resources":["daemonsets","deployments","statefulsets"],"verbs":["patch"]}'
	# Also where the injector is off, as long as status says that something is injected: it has to be put back.
	[ -z "$(says csvs)" ] ||
		echo '{"apiGroups":["operators.coreos.com"],"resources":["clusterserviceversions"],"verbs":["patch"]}'
}

### The grant

# The scope's name, where one is known, is part of the name: scopes of one namespace have grants of their own.
granted_scope=${chosen:-$scope}
granted_group=${chosen_group:-${only:-$usual}}
grant=ambit-authorized-from-$to${granted_scope:+.$granted_scope}
[ "$granted_group" = $usual ] || grant=$grant:$granted_group
title=$(title "$granted_group" "$granted_scope")

object() { # kind, namespace
	use="write roles and rolebindings in this namespace"
	[ -z "$granted_scope" ] || use="write here what $title projects"
	[ "$2" != "$to" ] || use="write the watch list of $title here, and change and restart its readers"
	cat <<OBJECT
---
apiVersion: rbac.authorization.k8s.io/v1
kind: $1
metadata:
  name: "$grant"
  namespace: "$2"
  labels: {ambit.dev/authorized-for: "$to", app.kubernetes.io/managed-by: ambit-authorize}
  annotations:
    ambit.dev/authorized-use: service account $to/$account may $use
OBJECT
	[ -z "$granted_scope" ] || echo "    ambit.dev/authorized-scope: \"$(short "$granted_group" "$granted_scope")\""
}

# Writes the manifests of a grant; the rules are in $tmp/rules.
make_manifests() { # namespace
	{ object Role "$1"; echo "rules:"; sed 's/^/- /' "$tmp/rules"; } >"$tmp/role.$1.yaml"
	{
		object RoleBinding "$1"
		echo "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: \"$grant\"}"
		echo "subjects:"
		echo "- {kind: ServiceAccount, name: \"$account\", namespace: \"$to\"}"
	} >"$tmp/rolebinding.$1.yaml"
	targets="$targets $1"
}

### Granting

# Something that is not a grant and has the name of one is left alone.
must_be_ours() { # namespace
	try get "roles.v1.rbac.authorization.k8s.io/$grant" "rolebindings.v1.rbac.authorization.k8s.io/$grant" -n "$1" --ignore-not-found -o \
		'go-template={{range .items}}{{.kind}} {{with .metadata.labels}}{{index . "app.kubernetes.io/managed-by"}}/{{index . "ambit.dev/authorized-for"}}{{end}}{{"\n"}}{{end}}' ||
		refused "looking for Role and RoleBinding $grant in namespace $1"
	foreign=$(awk -v ours="ambit-authorize/$to" '$2 != ours { print $1; exit }' "$tmp/out")
	[ -z "$foreign" ] || fail "$foreign $grant in namespace $1 is not a grant to $to, so it is left alone; rename or delete it"
}

# Adds the namespace to the scope's members or takes it out; $1 is add or remove, $2 none or server. The resource version
# goes along: the list belongs to whoever wrote it. Whoever may write the scope may do so all the time, which fails no dry run, and
# keeps no grant from being taken back: still_member then has the complaint.
still_member=
change_members() {
	for attempt in 1 2 3 4 5; do
		try get "$nss" "$chosen" -n "$to" -o 'go-template={{.metadata.resourceVersion}}{{"\n"}}{{range .spec.namespaceMembers}}{{printf "%+q" .}}{{"\n"}}{{end}}' ||
			refused "reading $title"
		version=$(head -n 1 "$tmp/out")
		sed 1d "$tmp/out" >"$tmp/members"
		if grep -qx -- "\"$namespace\"" "$tmp/members"; then
			[ "$1" = remove ] || return 0
			grep -vx -- "\"$namespace\"" "$tmp/members" >"$tmp/members.new" || true
		else
			[ "$1" = add ] || return 0
			{ cat "$tmp/members"; println "\"$namespace\""; } >"$tmp/members.new"
		fi
		list=$(paste -s -d , - <"$tmp/members.new")
		if try patch "$nss" "$chosen" -n "$to" --type=merge --field-manager=ambit-authorize --dry-run="$2" \
			-p '{"metadata":{"resourceVersion":"'"$version"'"},"spec":{"namespaceMembers":['"$list"']}}'; then
			return 0
		fi
		grep -q '(Conflict)' "$tmp/complaint" || break
		[ "$2" = none ] || return 0
		[ "$1$attempt" != remove3 ] || { still_member=$(cat "$tmp/err") && return 0; }
		sleep "$attempt"
	done
	! forbidden || fail "changing the members of $title: $(cat "$tmp/err"); let somebody run this who may," \
		"or leave scopes alone with -grant-only"
	refused "changing the members of $title"
}

make_account() { # none or server
	if [ "$1" = server ]; then
		try get serviceaccount "$account" -n "$to" -o name && made=yes && return
		! forbidden || { made=yes && return; }
		missing || refused "looking for service account $to/$account"
		made=
	fi
	[ -z "$made" ] || return 0
	echo '{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"'"$account"'","namespace":"'"$to"'",' \
		'"labels":{"app.kubernetes.io/managed-by":"ambit-authorize"}}}' >"$tmp/account.json"
	try create --field-manager=ambit-authorize --validate=false --dry-run="$1" -f "$tmp/account.json" && return
	! grep -q '(AlreadyExists)' "$tmp/complaint" || return 0
	# A namespace may consent to an account before it is there.
	{ [ -n "$grant_only" ] && [ -z "$at_home" ] && forbidden; } || refused "making service account $to/$account"
	[ "$1" = none ] ||
		echo "# Note: service account $to/$account does not exist, and you may not make it; somebody who may has to"
}

apply_grants() { # none or server
	make_account "$1"
	for target in $targets; do
		[ "$target" = "$namespace" ] || hint=", or grant in namespace $namespace alone with -grant-only"
		[ "$1" = none ] || must_be_ours "$target"
		write_grant "$1" "$tmp/role.$target.yaml" "$tmp/rolebinding.$target.yaml" || only_unbound "$1" ||
			refused "granting Role and RoleBinding $grant in namespace $target"
		[ "$1" != none ] || tie_grant "$target"
		hint=
	done
	[ -n "$grant_only$at_home" ] || change_members add "$1"
}

# kubectl applies as JSON with characters as they are, and the API server reads that as YAML, which has no control characters and
# takes some for a space. So where a rule has what is not ASCII, it is patched or created, which is read as JSON.
write_grant() { # none or server, role, rolebinding
	if ! grep -q '\\x7f\|\\[uU]' "$2"; then
		try apply --server-side --force-conflicts --field-manager=ambit-authorize --validate=false --dry-run="$1" -f "$2" -f "$3"
		return
	fi
	for file in "$2" "$3"; do
		try patch --type=merge --field-manager=ambit-authorize --dry-run="$1" -f "$file" --patch-file "$file" && continue
		missing && try create --field-manager=ambit-authorize --validate=false --dry-run="$1" -f "$file" || return
	done
}

# The RoleBinding goes with its Role, and what was projected with the RoleBinding: whoever deletes either takes back the whole.
tie_grant() { # namespace
	try get "roles.v1.rbac.authorization.k8s.io/$grant" -n "$1" -o 'go-template={{.metadata.uid}}' ||
		refused "looking for Role $grant in namespace $1"
	try patch "rolebindings.v1.rbac.authorization.k8s.io/$grant" -n "$1" --type=merge --field-manager=ambit-authorize \
		-p '{"metadata":{"ownerReferences":[{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","name":"'"$grant"'","uid":"'"$(cat "$tmp/out")"'"}]}}' ||
		refused "granting RoleBinding $grant in namespace $1"
}

# In a dry run the Role is not there to be bound, which is told after everything else was checked.
only_unbound() { # none or server
	[ "$1" = server ] && missing && ! grep 'Error from server' "$tmp/complaint" | grep -qv '(NotFound)'
}

# Grants along what the scope needs at home, if it is manual and names no account: it writes as one that is made for it. An
# account that was there before, such as Ambit's own, has its rights from elsewhere.
along_at_home() {
	[ -n "$chosen" ] && [ -n "$(says manual)" ] && [ "$delegate" = ambit ] && [ "$account" = ambit ] || return 0
	command="$0 $to -to $to -scope $(short "$chosen_group" "$chosen")"
	if [ -n "$grant_only" ]; then
		echo "# Note: nothing is granted in namespace $to itself; whoever may do that: $command"
		return
	fi
	if try get serviceaccount ambit -n "$to" -o 'go-template={{with .metadata.labels}}{{with index . "app.kubernetes.io/managed-by"}}{{.}}{{end}}{{end}}'; then
		if [ "$(cat "$tmp/out")" != ambit-authorize ]; then
			echo "# Note: service account $to/ambit was not made by this command, so its rights in namespace $to stay as they are;" \
				"to grant what the scope needs there: $command"
			return
		fi
	elif ! missing && ! forbidden; then
		refused "looking for service account $to/ambit"
	fi
	home_rules >"$tmp/rules"
	make_manifests "$to"
}

authorize() {
	account=${account:-${delegate:-ambit}}
	[ "${delegate:-$account}" = "$account" ] ||
		echo "# Note: $title writes as service account $delegate, to which this grants nothing"
	if [ -n "$at_home" ]; then home_rules >"$tmp/rules"; elif [ -n "$all" ]; then wide_rules >"$tmp/rules"; else find_rules; fi
	targets=
	make_manifests "$namespace"
	[ -n "$at_home" ] || along_at_home
	for target in $targets; do
		cat "$tmp/role.$target.yaml" "$tmp/rolebinding.$target.yaml"
		echo "# Service account $account of $to may, in namespace $target only, do what the rules above say."
	done
	[ "$dry" != client ] || { echo "# Nothing was changed: this was a dry run by the client."; return; }
	apply_grants server
	[ "$dry" != server ] || { echo "# Nothing was changed: this was a dry run by the server, which would accept it."; return; }
	apply_grants none
	[ -n "$grant_only$at_home" ] || { echo "# Granted. $namespace is a member of $title."; return; }
	echo "# Granted. No scope was changed."
}

### Taking back

# Lists the grants in a namespace into $tmp/listed: kind, name in quotes and scope, bindings first. A scope that has no name of one
# was written by somebody else; that is a grant for no scope, which is taken back with any.
# A grant for what is installed in the other namespace is for no scope; it is listed as that of "+installs", which no scope is called.
list_grants() { # namespace
	: >"$tmp/listed"
	for kind in rolebinding role; do
		try get $kind.v1.rbac.authorization.k8s.io -n "$1" -l "ambit.dev/authorized-for=$to,app.kubernetes.io/managed-by=ambit-authorize" -o \
			'go-template={{range .items}}'$kind'{{"\t"}}{{printf "%+q" .metadata.name}}{{"\t"}}{{with .metadata.annotations}}{{with index . "ambit.dev/authorized-scope"}}{{printf "%+q" .}}{{end}}{{end}}{{"\n"}}{{end}}' ||
			return
		awk -F '\t' -v usual="\"$usual/" -v older="\"$older/" -v installs="\"ambit-authorized-from-$to+installs" '
			{ group = ""; name = $3; gsub(/^"|"$/, "", name)
			  if (index($3, usual) == 1) name = substr(name, length(usual))
			  if (index($3, older) == 1) { group = substr(older, 2); name = substr(name, length(older)) }
			  if (length(name) > 253 || name !~ /^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/) group = name = ""
			  if (index($2, installs) == 1 && substr($2, length(installs) + 1, 1) ~ /["+]/) { group = ""; name = "+installs" }
			  print $1 "\t" $2 "\t" group name }' "$tmp/out" >>"$tmp/listed"
	done
}

# Writes those that are taken back into $tmp/grants. Those of other scopes stay.
find_grants() {
	list_grants "$namespace" || refused "listing the roles and rolebindings of namespace $namespace"
	cp "$tmp/listed" "$tmp/here"
	mine=
	[ -z "$granted_scope" ] || mine=" $(short "$granted_group" "$granted_scope") "
	# Without a look at the scopes, a name without its group may mean either.
	[ -z "$mine" ] || [ -n "$chosen$only" ] || mine="$mine$older/$granted_scope "
	installs=
	: >"$tmp/grants"
	while IFS=$tab read -r kind name of; do
		case ${mine:- $of } in
		*" $of "*) println "$kind$tab$name$tab$of" >>"$tmp/grants" ;;
		*) [ -z "$of" ] && println "$kind$tab$name$tab" >>"$tmp/grants" && continue
			[ $kind != rolebinding ] || continue
			[ "$of" != +installs ] || { installs=yes && continue; }
			println "Note: the grant for scope $of stays; to take it back: $0 $namespace -to $to -delete -scope $of" ;;
		esac
	done <"$tmp/listed"
	[ -z "$installs" ] || println "Note: the grant for what is installed in $to stays; to take it back: ambit revoke $namespace --to $to --installs"
	[ -z "$mine" ] || awk -F '\t' '$3 != "" { of[$3] } END { for (o in of) n++; exit n > 1 }' "$tmp/grants" ||
		fail "there are grants for $scope of $usual and of $older; give -scope GROUP/NAME"
}

# Names what the scopes that lose a member still hold in their own namespace: other members need it.
show_what_stays() {
	[ -z "$at_home" ] || return 0
	list_grants "$to" || { forbidden && return; } || refused "listing the roles and rolebindings of namespace $to"
	awk -F '\t' 'FILENAME == ARGV[1] { lost[$3]; next } $1 == "role" && $3 !~ /^([+]|$)/ && ($3 in lost) { print $3 }' "$tmp/grants" "$tmp/listed" >"$tmp/stays"
	while read -r of; do
		echo "Note: what NamespaceScope $of was granted in namespace $to itself stays, as does its service account, because other members" \
			"may need them; to take it back: $0 $to -to $to -delete -scope $of -grant-only"
	done <"$tmp/stays"
}

# Whoever holds a grant may put finalizers on it, and a binding gives what it gives for as long as it is there. Nobody can add one
# to an object that is being deleted.
is_held() { grep -q 'timed out waiting' "$tmp/complaint"; }

# The patch names the UID, so that the API server refuses it for what was made under the same name since.
release() {
	try get -f "$tmp/grant.yaml" -o 'go-template={{if .metadata.deletionTimestamp}}{{.metadata.uid}}{{end}}' </dev/null ||
		{ missing && return; } || return
	uid=$(cat "$tmp/out")
	[ -n "$uid" ] || return 0
	println "{\"metadata\":{\"uid\":\"$uid\",\"finalizers\":null}}" >"$tmp/patch"
	try patch -f "$tmp/grant.yaml" --type=merge --field-manager=ambit-authorize --patch-file "$tmp/patch" </dev/null ||
		missing || grep -q 'is invalid: metadata.uid:' "$tmp/complaint"
}

take_back() { # none or server
	while IFS=$tab read -r kind name _; do
		shown=$(println "$name" | plain)
		case $kind in role) rbac_object Role "$name" "$namespace" ;; *) rbac_object RoleBinding "$name" "$namespace" ;; esac >"$tmp/grant.yaml"
		if ! try delete -f "$tmp/grant.yaml" --ignore-not-found --timeout=2s --dry-run="$1" </dev/null; then
			{ is_held && release; } || refused "taking back $kind $shown in namespace $namespace"
		fi
		[ "$1" = server ] || println "$kind $shown in namespace $namespace: taken back"
	done <"$tmp/grants"
}

# Names the bindings that still give accounts of the other namespace something, and fails if there are none. Whoever holds a grant
# may write roles and rolebindings: take the labels off the grant, by which it is known, or bind what it holds under any name. What
# goes with a grant is not among them, nor are the grants that stay: their roles were named, but not what has the labels of a grant and
# binds something else. What names a grant as owner, and says another kind, does not go: garbage collection looks for that.
find_kept() {
	try get rolebindings.v1.rbac.authorization.k8s.io -n "$namespace" -o \
		'go-template={{range .items}}{{$b := .}}{{range .subjects}}{{printf "%+q" $b.metadata.name}}{{"\t"}}{{$b.roleRef.kind}}{{"\t"}}{{printf "%+q" $b.roleRef.name}}{{"\t"}}{{.kind}}{{"\t"}}{{with .namespace}}{{printf "%x" .}}{{end}}{{"\t"}}{{printf "%x" .name}}{{"\t"}}{{with $b.metadata.finalizers}}held{{end}}{{with $b.metadata.ownerReferences}}{{if eq (len .) 1}}{{range .}}{{if eq (printf "%s/%s" .apiVersion .kind) "rbac.authorization.k8s.io/v1/Role" "rbac.authorization.k8s.io/v1/RoleBinding"}}{{if eq .kind "Role"}}role{{else}}rolebinding{{end}} {{printf "%+q" .name}}{{end}}{{end}}{{end}}{{end}}{{"\n"}}{{end}}{{end}}' ||
		refused "listing the rolebindings of namespace $namespace"
	awk -F '\t' -v other="$(hex "$to")" -v user="$(hex "system:serviceaccount:$to:")" \
		-v groups=" $(hex system:serviceaccounts) $(hex "system:serviceaccounts:$to") $(hex system:authenticated) " '
		FILENAME == ARGV[1] { is[$1 " " $2]; next }
		FILENAME == ARGV[2] { gone[$1 " " $2]; next }
		FNR == 1 { pass++ }
		{ me = "rolebinding " $1; role = "role " $3 }
		pass == 1 { if (me in is && !(me in gone) && $2 == "Role" && role in is && !(role in gone)) named[me]; next }
		me in named || $7 in named || $7 ~ /^role / && $7 in is && !($7 in gone) || $1 in told { next }
		$4 == "ServiceAccount" && $5 == other || $4 == "User" && index($6, user) == 1 || $4 == "Group" && index(groups, " " $6 " ") {
			told[$1]; print $2 "\t" $3 "\t" $1 "\t" ($7 in gone ? "goes" : "") }' "$tmp/here" "$tmp/grants" "$tmp/out" "$tmp/out" >"$tmp/kept"
}

# What goes with a grant has some time for that: by such a binding, its holder may still take off its owners, and have garbage
# collection do other things.
show_kept() {
	[ -z "$at_home" ] || return
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		find_kept
		grep -q 'goes$' "$tmp/kept" || break
		sleep 1
	done
	while IFS=$tab read -r kind role name _; do
		role=$(println "$role" | plain) name=$(println "$name" | plain)
		# A name that the shell may read otherwise is not one to copy.
		case $name in \"* | -* | *[*~]*) command="look at it with kubectl get rolebindings -n $namespace" ;;
		*) command="kubectl delete rolebinding -n $namespace -- $name" ;; esac
		println "Note: RoleBinding $name in namespace $namespace stays, and gives accounts of $to what $kind $role allows; if it should not: $command"
	done <"$tmp/kept"
	[ -s "$tmp/kept" ]
}

# The label of what is projected for a scope; "?" where there is no program to tell it.
hash() { # group
	sum=$(printf '%s\0' "$1" NamespaceScope "$to" "$chosen" | { sha256sum || shasum -a 256; } 2>/dev/null | cut -c 1-16) || true
	echo "${sum:-?}"
}

# The annotation does not say the group, so what the label gives to the scope of the same name in the other group is left out.
count_projected() {
	try get roles.v1.rbac.authorization.k8s.io,rolebindings.v1.rbac.authorization.k8s.io -n "$namespace" -o \
		'go-template={{range .items}}{{$l := "-"}}{{with .metadata.labels}}{{with index . "ambit.dev/scope"}}{{$l = .}}{{end}}{{end}}{{$l}} {{with .metadata.annotations}}{{with index . "ambit.dev/owner"}}{{printf "%x" .}}{{end}}{{end}}{{"\n"}}{{end}}' ||
		refused "listing the roles and rolebindings of namespace $namespace"
	case $chosen_group in "$usual") twin=$older ;; *) twin=$usual ;; esac
	awk -v mine="$(hash "$chosen_group")" -v twin="$(hash "$twin")" -v owner="$(hex "NamespaceScope/$to/$chosen")" \
		'$1 != twin && ($1 == mine || $2 == owner) { n++ } END { print n + 0 }' "$tmp/out"
}

revoke() {
	leave=yes
	[ -z "$grant_only$at_home" ] || leave=
	find_grants
	show_what_stays
	if [ "$dry" = client ]; then
		while IFS=$tab read -r kind name _; do
			println "$kind $(println "$name" | plain) in namespace $namespace: would be taken back"
		done <"$tmp/grants"
		echo "Nothing was changed: this was a dry run by the client."
		return
	fi
	[ -z "$leave" ] || change_members remove server
	take_back server
	[ "$dry" != server ] || { echo "Nothing was changed: this was a dry run by the server, which would accept it."; return; }
	left=0
	if [ -n "$leave" ]; then
		change_members remove none
	fi
	if [ -n "$leave" ] && [ -z "$still_member" ]; then
		echo "$title: $namespace is a member no longer"
		# As long as something projected is there, the manager needs the grant to take it away.
		for _ in 1 2 3 4 5 6 7 8 9 10; do
			left=$(count_projected)
			[ "$left" != 0 ] || break
			sleep 1
		done
	fi
	[ -s "$tmp/grants" ] || echo "Nothing was granted to $to in namespace $namespace."
	take_back none
	# Whoever keeps something may mark it as projected, too: that must not hide the rest.
	kept=
	if show_kept; then kept=yes; fi
	[ -z "$still_member" ] || fail "the grant is taken back, but namespace $namespace is still a member:" \
		"changing the members of $title: $still_member"
	[ "$left" = 0 ] || fail "the grant is taken back, but $left objects that $title projected are still in" \
		"namespace $namespace; is Ambit running? To see them: kubectl get roles,rolebindings -n $namespace -l ambit.dev/scope"
	if [ -n "$kept" ]; then
		echo "Done. Accounts of $to still have in $namespace what the notes name."
	else
		echo "Done: nothing of this is authorized in $namespace any more."
	fi
}

if [ -n "$delete" ]; then revoke; else authorize; fi
