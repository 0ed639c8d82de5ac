"""Known programs: options that start a program or write a file are beyond a prefix rule, the others are not.

In the table a line with `-` lists commands that ask under `Bash(program *)`, one with `+` commands that run;
`¦` separates commands and `⏎` is a line end.
"""

from __future__ import annotations

import pytest

from robota.core.permissions import evaluate_permission
from robota.core.shell.programs import load_programs

TABLE = r"""
find
    - find . -exec rm {} + ¦ find . -execdir x \; ¦ find . -ok x \; ¦ find . -okdir x \; ¦ find . -delete
    - find . -fprint x ¦ find . -fprint0 x ¦ find . -fprintf x y ¦ find . -fls x ¦ find . $(echo -delete)
    + find . -name x ¦ find . -type f -name '*.py' -print0 ¦ find . -mtime -1
    + find . \( -name a -o -name b \) ¦ find "$DIR" -name "$P" ¦ find . -name "*exec*"
    + find . -printf "%p"
fd
    - fd -x rm ¦ fd --exec rm ¦ fd -X rm ¦ fd --exec-batch rm ¦ fd -Hx rm
    + fd foo ¦ fd -e py foo ¦ fd -H x
fdfind
    - fdfind -x rm ¦ fdfind --exec rm
    + fdfind foo
rg
    - rg --pre x y ¦ rg --pre=x y ¦ rg --hostname-bin x ¦ rg -z x ¦ rg --search-zip x ¦ rg -nz x
    + rg foo ¦ rg -n foo src ¦ rg --pretty x ¦ rg --pre-glob '*' x ¦ rg -e -z ¦ rg -- -z ¦ rg -A3 -tpy foo
ag
    - ag --pager=x y
    + ag foo
ack
    - ack --pager=x y
    + ack foo
sort
    - sort -o x y ¦ sort -ox y ¦ sort --output=x y ¦ sort --out x y ¦ sort -no x y ¦ sort y -o y
    - sort {-o,x} y ¦ sort --compress-program=x ¦ sort --comp x ¦ sort $(echo -o x) ¦ sort $(cat f)
    - sort `echo -ox` ¦ X='-o f'; sort $X ¦ X=' -o f'; sort a$X ¦ for f in -o x; do sort $f; done
    - sort ${X:--o} f ¦ sort ${X:-'-o'}
    + sort f ¦ sort -k2 f ¦ sort -k 2,2n -t, f ¦ sort -t o f ¦ sort -to f ¦ sort -- -o ¦ sort $FILE
    + sort "$HOME/x" ¦ X=a; sort $X ¦ for f in a b; do sort "$f"; done ¦ sort *.txt ¦ sort f > /dev/null
shuf
    - shuf -o x y ¦ shuf --output=x
    + shuf -n 1 f
uniq
    - uniq a b
    + uniq -c ¦ uniq a ¦ uniq -f 1 a
xxd
    - xxd a b
    + xxd a ¦ xxd -l 10 a
split
    - split --filter=x f
    + split -l 5 f
tree
    - tree -o x
    + tree -L 2 -I x
base64
    - base64 -o x f ¦ base64 --output=x f
    + base64 -d f ¦ base64 -w 0 f
base32
    - base32 -o x f
    + base32 f
iconv
    - iconv -o x f ¦ iconv --output=x f
    + iconv -f a -t b f
file
    - file -C -m x ¦ file --compile
    + file x
yq
    - yq -i .a f ¦ yq --inplace .a f
    + yq .a f
sed
    - sed -i s/a/b/ f ¦ sed -i.bak s/a/b/ f ¦ sed -ni p f ¦ sed -Ei s/a/b/ f ¦ sed --in-place s/a/b/ f
    - sed --in-p p f ¦ sed -n 'w x' f ¦ sed 's/a/b/w x' f ¦ sed 's/a/b/e' f ¦ sed '1e rm' f
    - sed -e p -e 'w x' f ¦ sed --exp='w x' ¦ sed -f script f ¦ sed "$X" f ¦ sed 's/[/]/;s/w out/x/' f
    - sed '1,2W x' f ¦ sed '$!{e ls⏎}' f
    + sed -n 1,5p f ¦ sed s/a/b/ f ¦ sed -e s/a/b/ -e s/c/d/ f ¦ sed -E 's/(a)/\1/g' f ¦ sed '/x/d' f
    + sed 10q f ¦ sed 's|/a|/b|g' ¦ sed '1!G;h;$!d' f ¦ sed 's/w/e/g' f ¦ sed -n '$=' f ¦ sed 's/[/]/x/' f
    + sed 's/[[:space:]]*$//' ¦ sed ':a;N;$!ba;s/\n/ /g' f ¦ sed 'y/ab/cd/' f
    + sed -n '/a/,/b/{s/x/y/;p}' f
gsed
    - gsed -i s/a/b/ f
    + gsed s/a/b/ f
awk
    - awk 'BEGIN{system("rm")}' ¦ awk '{print > "f"}' x ¦ awk '{print | "sh"}' x ¦ awk '{"x" | getline}'
    - awk -f prog f ¦ awk --file=x f ¦ awk -i inplace 1 f ¦ awk "$X" f ¦ awk '@load "x"'
    - awk '{print $1>"f"}' x ¦ awk 'BEGIN{x = i++ / system("rm") / 2}'
    - awk '{ printf "%s", $1 >> "f" }' x
    + awk '{print $1}' f ¦ awk -F: '{print $1}' f ¦ awk '$1 > 5 {print $2}' f ¦ awk 'NR==1' f
    + awk -v x=1 '{print x}' f ¦ awk '/a|b/' f ¦ awk '{print "a > b | c"}' ¦ awk '{ if ($1 > 1) print }' f
    + awk '{print ($1 > 2)}' f ¦ awk '{s+=$1} END {print s/NR}' ¦ awk '!a[$0]++' f
    + awk '{gsub(/\//,"_")}1' f
gawk
    - gawk -f p f ¦ gawk 'BEGIN{system("x")}'
    + gawk '{print}' f
mawk
    - mawk -f p f ¦ mawk 'BEGIN{system("x")}'
    + mawk '{print}' f
nawk
    - nawk -f p f ¦ nawk 'BEGIN{system("x")}'
    + nawk '{print}' f
git
    - git -c core.pager=x log ¦ git -C d -c a=b log ¦ git --exec-path=/x log ¦ git --config-env=a=b log
    - git $X ¦ git fetch --upload-pack=x ¦ git fetch --upload-pa x ¦ git clone -u x u ¦ git clone -c a=b u
    - git clone ext::sh ¦ git ls-remote --upload-pack=x ¦ git push --receive-pack=x ¦ git push --exec=x
    - git remote add x ext::sh ¦ git config core.hooksPath x ¦ git config alias.x '!rm'
    - git config --global core.pager x ¦ git config -e ¦ git config diff.x.command y
    - git config x.y '!rm' ¦ git config set core.editor x
    - git config --add core.sshCommand x ¦ git config -f x a.b c ¦ git hook run x ¦ git bisect run x
    - git rebase -x rm main ¦ git rebase --exec rm ¦ git rebase --exe rm ¦ git rebase -i HEAD~3
    - git grep -O x ¦ git grep -Ovim x ¦ git grep --open-files-in-pager=x y ¦ git difftool
    - git filter-branch x ¦ git submodule foreach rm ¦ git diff --output=x ¦ git log --outp x
    - git diff --ext-diff ¦ git archive -o x HEAD ¦ git format-patch -o x ¦ git bundle create x HEAD
    - git log $(git rev-parse --output=x) ¦ git log $(cat f)
    + git config diff.algorithm x ¦ git config remote.origin.fetch x ¦ git log --oneline ¦ git log -c
    + git log -p -5 ¦ git diff --stat ¦ git diff -c ¦ git commit -m x
    + git commit -c HEAD ¦ git switch -c b ¦ git config user.name x ¦ git config --get core.pager
    + git config core.pager ¦ git config --list ¦ git rebase main ¦ git rebase --continue
    + git push -u origin main ¦ git push -o ci.skip ¦ git clone -b x u ¦ git bisect good
    + git submodule update --init ¦ git -C sub log ¦ git --no-pager log ¦ git grep -n foo ¦ git add -A
    + git log --format=%H -S foo ¦ git diff HEAD -- --output=x ¦ git diff --output-indicator-new=x
    + git remote -v ¦ git log $(git merge-base a b) ¦ git diff $(git rev-parse HEAD) ¦ git log "$BRANCH"
    + git log $A..$B
tar
    - tar xf a --to-command=x ¦ tar --to-comm x -xf a
    - tar cf a --checkpoint=1 --checkpoint-action=exec=x b ¦ tar -I x -cf a b ¦ tar cIf x a b
    - tar --use-compress-program=x -cf a ¦ tar -F x -cf a ¦ tar --rsh-command=x -xf a
    - tar --index-file=f -tf a
    + tar tf a ¦ tar xf a ¦ tar czf a.tgz b ¦ tar -czf a.tgz -C d . ¦ tar -xzvf a.tgz
    + tar --exclude=x -cf a b ¦ tar cf a *
zip
    - zip a b -T -TT x ¦ zip a b --unzip-command x
    + zip -r a b
ssh
    - ssh -o ProxyCommand=x h ¦ ssh -oProxyCommand=x h ¦ ssh -o 'proxycommand x' h
    - ssh -vo ProxyCommand=x h ¦ ssh -o PermitLocalCommand=yes h ¦ ssh -F cfg h ¦ ssh -E log h
    - ssh -o $X h ¦ ssh h -o ProxyCommand=x ¦ ssh -p 22 h -F cfg ls ¦ ssh -- h -oProxyCommand=x
    + ssh h ls ¦ ssh -p 22 -i k u@h uptime ¦ ssh -o StrictHostKeyChecking=no h ¦ ssh -oBatchMode=yes h
    + ssh h ls -o x
scp
    - scp -S x a b ¦ scp -o ProxyCommand=x a b ¦ scp -F x a b
    + scp a h:b ¦ scp -r -P 22 a h:b
sftp
    - sftp -S x h ¦ sftp -b f h ¦ sftp -o ProxyCommand=x h
    + sftp h
rsync
    - rsync -e x a b ¦ rsync --rsh=x a b ¦ rsync --rsync-path=x a b ¦ rsync -avze 'ssh -p 1' a b
    - rsync --log-file=x a b
    + rsync -av a b ¦ rsync --delete -a a b ¦ rsync --exclude e a b
curl
    - curl -o x u ¦ curl -O u ¦ curl --output x u ¦ curl -sSLo x u ¦ curl -fsSLO u ¦ curl -K cfg u
    - curl --config x ¦ curl -D h u ¦ curl -c jar u ¦ curl --trace x u ¦ curl -w '%output{x}' u
    - curl --output-dir d -O u ¦ curl -o $X u
    + curl u ¦ curl -fsSL u ¦ curl -o /dev/null u ¦ curl -so /dev/null -w '%{http_code}' u
    + curl -H 'A: b' u ¦ curl -I u ¦ curl -X POST -d '{}' u ¦ curl -d @f u ¦ curl -o - u
    + curl --compressed --connect-timeout 5 u
wget
    - wget -O x u ¦ wget -o x u ¦ wget --output-document=x u ¦ wget -e x=y u ¦ wget --use-askpass=x u
    - wget -P d u
    + wget u ¦ wget -q u ¦ wget -qO- u ¦ wget -O - u ¦ wget -O /dev/null u ¦ wget -T 5 u
less
    - less -o x f ¦ less '+!rm' f ¦ less --log-file=x f ¦ less -k x f
    + less f ¦ less -N f
more
    - more +!x f
    + more f
man
    - man -P x ls ¦ man --pager=x ls ¦ man -H x
    + man ls ¦ man -k x
bat
    - bat --pager=x f
    + bat f ¦ bat --paging=never -l py f
batcat
    - batcat --pager=x f
    + batcat f
vim
    - vim -c ':!rm' f ¦ vim +x f ¦ vim -S x ¦ vim --cmd x ¦ vim -u x ¦ vim -es -c q ¦ vim -w x f
    + vim f ¦ vim -R f
vi
    - vi -c x f ¦ vi +x f
    + vi f
nvim
    - nvim -c x f ¦ nvim -l x
    + nvim f
view
    - view -c x f
    + view f
ex
    - ex -s f ¦ ex -c x f
    + ex f
emacs
    - emacs --eval x ¦ emacs -l x ¦ emacs --script x
    + emacs f
gdb
    - gdb -ex x p ¦ gdb -x f p ¦ gdb --args p x
    + gdb p
tcpdump
    - tcpdump -z x ¦ tcpdump -w x
    + tcpdump -i eth0
make
    - make SHELL=/tmp/x all ¦ make -f /dev/stdin ¦ make -f - all ¦ make -f- ¦ make --makefile=/proc/self/fd/0
    - make MAKEFLAGS=--eval=x ¦ make 'X!=id' ¦ make 'X=$(shell id)' ¦ make .SHELLFLAGS=x
    + make shell ¦ make SHELLCHECK=1 lint ¦ make -f Makefile.dev build ¦ make CC=clang all
    - make --eval=x ¦ make --eva x ¦ make -E x
    + make test ¦ make -j4 ¦ make -C d -f Other.mk
go
    - go test -exec x ¦ go build -toolexec=x ¦ go vet -vettool=x
    + go test ./... ¦ go build -o bin/x ./...
cargo
    - cargo --config x build
    + cargo build ¦ cargo test --release
npm
    - npm test --script-shell=x
    + npm test ¦ npm run build -- --x
helm
    - helm template --post-renderer x c
    + helm template c
xmllint
    - xmllint --output x f
    + xmllint --format f
openssl
    - openssl enc -out x ¦ openssl req -keyout x ¦ openssl x -engine y
    + openssl x509 -in c -text
gpg
    - gpg -o x -d f ¦ gpg --output x -d f
    + gpg --verify f
date
    - date -s x ¦ date --set=x
    + date +%F ¦ date -d tomorrow ¦ date -u
hash
    - hash -p /x ls
    + hash -r
enable
    - enable -f x y
    + enable -n echo
bind
    - bind -x x
    + bind -l
complete
    - complete -C x y ¦ complete -F x y
    + complete -p
alias
    - alias ls=rm
    + alias ls
mapfile
    - mapfile -C x a
    + mapfile -t a
readarray
    - readarray -C x a
    + readarray -t a
psql
    - psql -c "COPY t FROM PROGRAM 'id'"
    + psql -c 'select program from t'
    - psql -o x ¦ psql -f x ¦ psql -c '\! rm'
    + psql -c 'select 1'
sqlite3
    - sqlite3 db '.sh id' ¦ sqlite3 db '.o f' ¦ sqlite3 db ".read '|id'" ¦ sqlite3 db 'select 1;⏎.shell id'
    + sqlite3 db 'select a.shell, t.log, r.output from t' ¦ sqlite3 ./x.db .indexes ¦ sqlite3 db .dump
    - sqlite3 d '.shell rm' ¦ sqlite3 d '.output x' ¦ sqlite3 -init f d
    + sqlite3 d 'select 1'
mysql
    - mysql -e '\! rm' ¦ mysql --pager=x ¦ mysql -e "select 1 INTO OUTFILE '/x'"
    + mysql -e 'select 1'
vimdiff
    - vimdiff -c '!id' a b ¦ vimdiff +x a b
    + vimdiff a b
gvimdiff
    - gvimdiff -c x a b
    + gvimdiff a b
nvimdiff
    - nvimdiff -c x a b
    + nvimdiff a b
gvim
    - gvim -c '!id' f
    + gvim f
gview
    - gview -c x f
    + gview f
rvim
    - rvim -S x f
    + rvim f
rview
    - rview -c ':py3 1' f
    + rview f
gcc
    - gcc -wrapper sh,-c,id x.c ¦ gcc -fplugin=x.so x.c ¦ gcc -B. x.c ¦ gcc -specs=x x.c ¦ gcc @args
    + gcc -Wall -O2 -o x x.c ¦ gcc -Wl,-Bstatic x.c ¦ gcc -std=c11 -Iinclude -lm x.c ¦ gcc --version
g++
    - g++ -wrapper sh x.cc
    + g++ -c x.cc
cc
    - cc -wrapper sh x.c
    + cc -c x.c
c++
    - c++ -wrapper sh x.cc
    + c++ -c x.cc
clang
    - clang -fplugin=x.so a.c ¦ clang -Xclang -load -Xclang x.so a.c ¦ clang -fuse-ld=/x a.c
    + clang -c -O2 x.c ¦ clang -Xclang -ast-dump -fsyntax-only x.c ¦ clang -fuse-ld=lld x.c
clang++
    - clang++ -fpass-plugin=x a.cc
    + clang++ -c a.cc
emacsclient
    - emacsclient -e '(x)' ¦ emacsclient --eval '(x)' ¦ emacsclient -a x f
    + emacsclient -n f
nano
    - nano -s id f ¦ nano --speller=id f
    + nano f ¦ nano +3 f
nc
    - nc -e /bin/sh h 1 ¦ nc h 1 -e /bin/sh ¦ nc -c sh h 1 ¦ nc -lve sh
    + nc -zv localhost 80 ¦ nc -l -p 80 ¦ nc -w 3 h 1 ¦ nc -U /s
netcat
    - netcat -e sh h 1
    + netcat -zv h 1
ncat
    - ncat --exec sh h 1 ¦ ncat --sh-exec id h 1 ¦ ncat --lua-exec x h 1 ¦ ncat -o f h 1
    + ncat --ssl h 443 ¦ ncat -l 80
socat
    - socat TCP:h:1 EXEC:sh ¦ socat - sYsTem:id ¦ socat -u TCP:h:1 OPEN:f,creat ¦ socat - 'STDIN!!EXEC:id'
    - socat - CREATE:f ¦ socat - ./f ¦ socat -r f - TCP:h:1 ¦ socat - SHELL:id
    + socat TCP-LISTEN:80,fork TCP:h:81 ¦ socat - TCP:h:80 ¦ socat - OPENSSL:h:443,verify=0
ssh-keygen
    - ssh-keygen -D ./x.so ¦ ssh-keygen -w x
    + ssh-keygen -lf k.pub ¦ ssh-keygen -t ed25519 -C a -f k -N ''
ssh-add
    - ssh-add -s ./x.so
    + ssh-add -l
sudo
    - sudo -s ¦ sudo -i ¦ sudo --login ¦ sudo -u root -s ¦ sudo -e f ¦ sudo rm x
    + sudo -l ¦ sudo -n echo -s x ¦ sudo -u root cat -e f
apt
    - apt -o APT::Update::Pre-Invoke::=id update ¦ apt -c f update
    + apt list ¦ apt install -y x
apt-get
    - apt-get update -o APT::Update::Pre-Invoke::=id
    + apt-get install -y --no-install-recommends x ¦ apt-get -qq update
dpkg
    - dpkg --pre-invoke=id -i x.deb
    + dpkg -l ¦ dpkg --get-selections
nmap
    - nmap --script=x h ¦ nmap -oN f h ¦ nmap -oA f h
    + nmap -sV -p 80 h ¦ nmap -O h
aria2c
    - aria2c --on-download-complete=x u
    + aria2c u
yt-dlp
    - yt-dlp --exec id u ¦ yt-dlp --exec-before-download id u
    + yt-dlp -F u
fzf
    - fzf --preview id ¦ fzf --bind 'enter:execute(id)'
    + fzf --filter x
pandoc
    - pandoc -F x a.md ¦ pandoc --lua-filter=x a.md ¦ pandoc --pdf-engine=x a.md
    + pandoc -f markdown -t html a.md ¦ pandoc --file-scope a b
lldb
    - lldb -o 'platform shell id' ¦ lldb -s f
    + lldb ./a ¦ lldb -p 1
svn
    - svn --config-option x diff ¦ svn diff --diff-cmd id
    + svn status ¦ svn log -l 3
hg
    - hg --config alias.x='!id' x
    + hg status ¦ hg commit -m 'x' ¦ hg config
delta
    - delta --pager x a b
    + delta a b
dc
    - dc -e '!id'
    + dc -e '1 2 + p'
cpio
    - cpio -o --rsh-command=id -F h:f
    + cpio -it
gmake
    - gmake --eval='x:;id' ¦ gmake SHELL=/x
    + gmake all
"""


def commands(text: str) -> list[str]:
    return [cell.strip().replace("⏎", "\n") for cell in text.split("¦")]


def read_table() -> dict[str, dict[str, list[str]]]:
    rows: dict[str, dict[str, list[str]]] = {}
    for line in TABLE.strip().splitlines():
        if not line.startswith(" "):
            row = rows[line] = {"-": [], "+": []}
        else:
            row[line[4]] += commands(line[6:])
    return rows


ROWS = read_table()


def decide(program: str, command: str) -> str:
    helpers = ["Bash(echo *)", "Bash(cat *)", "Bash(git *)"]
    return evaluate_permission("Bash", {"command": command}, allow=[f"Bash({program} *)", *helpers], cwd="/w")


def test_every_row_of_the_data_has_its_test() -> None:
    assert set(ROWS) == set(load_programs().options)


@pytest.mark.parametrize(("sign", "answer"), [("-", "approve"), ("+", "auto")])
def test_a_prefix_rule_covers_everyday_use_and_nothing_that_starts_a_program_or_writes_a_file(
    sign: str, answer: str
) -> None:
    wrong = [
        (program, command)
        for program, row in ROWS.items()
        for command in row[sign]
        if decide(program, command) != answer
    ]
    assert wrong == [], f"these do not give {answer}"


@pytest.mark.parametrize(
    ("rule", "command", "answer"),
    [
        ("Bash(sed -i s/a/b/ *)", "sed -i s/a/b/ f g", "auto"),
        ("Bash(sed -i s/a/b/ *)", "sed -i s/a/b/ -e 'w x' f", "approve"),
        ("Bash(find . -name x -delete)", "find . -name x -delete", "auto"),
        ("Bash(git -c color.ui=always log *)", "git -c color.ui=always log -5", "auto"),
        ("Bash(git -c *)", "git -c core.pager=x log", "approve"),
        ("Bash(/usr/bin/find *)", "/usr/bin/find . -delete", "approve"),
        ("Bash(find *)", "timeout 5 find . -delete", "approve"),
        ("Bash(tool *)", "tool -o x --exec y", "auto"),
    ],
)
def test_a_rule_covers_what_it_spells_out(rule: str, command: str, answer: str) -> None:
    assert evaluate_permission("Bash", {"command": command}, allow=[rule], cwd="/w") == answer


def rules_for(*programs: str) -> list[str]:
    return [f"Bash({program} *)" for program in programs]


@pytest.mark.parametrize(
    "command",
    commands(r"""read X; sort $X ¦ while read X; do sort $X; done ¦ set -- -o x; sort "$@" ¦ X=$Y; sort $X
        ¦ f() { sort "$@"; }; f -o x ¦ bash -c 'sort "$@"' _ -o x ¦ export X=-o; bash -c 'sort $X f'
        ¦ X=-o; bash -c 'sort $X f' ¦ bash -c 'X=-o; sort $X f'"""),
)
def test_a_value_produced_in_the_same_text_is_followed(command: str) -> None:
    allow = rules_for("sort", "read", "set", "bash", "export")
    assert evaluate_permission("Bash", {"command": command}, allow=allow, cwd="/w") == "approve"


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        *((each, "approve") for each in commands(
            "sort $x-o f ¦ sort -${x}o f ¦ sort -${x:-o} f ¦ sort a${x:- -o} f ¦ sort a$IFS-o f"
        )),
        *((each, "auto") for each in commands("sort a-$x ¦ sort \"$x-f\" ¦ sort -k$x f ¦ sort ${x:-a} f")),
    ],
)  # fmt: skip
def test_a_value_that_vanishes_or_splits_may_leave_an_option(command: str, answer: str) -> None:
    assert evaluate_permission("Bash", {"command": command}, allow=rules_for("sort"), cwd="/w") == answer


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        *((f"{setting}; ls -l", "approve") for setting in commands(
            "export PATH=/x ¦ declare -x PATH=/x ¦ declare -n r=PATH ¦ read PATH ¦ unset PATH"
            "¦ printf -v PATH x ¦ printf -vPATH x ¦ export $X=/y ¦ exec {PATH}>/dev/null"
            "¦ export LD_PRELOAD=x ¦ time PATH=/x ¦ time -p -- PATH=/x ¦ bash -c 'PATH=/x; ls -l'"
        )),
        *((f"{setting}; ls -l", "auto") for setting in commands(
            "export FOO=$BAR ¦ read -r x ¦ printf '%s' $X ¦ export CI=1 ¦ unset FOO ¦ x=1"
        )),
    ],
)  # fmt: skip
def test_variables_that_steer_other_programs_are_not_set_unasked(command: str, answer: str) -> None:
    allow = rules_for("ls", "export", "declare", "read", "printf", "unset", "exec", "bash", "time")
    assert evaluate_permission("Bash", {"command": command}, allow=allow, cwd="/w") == answer
