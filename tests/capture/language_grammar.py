"""The grammar of generated programs: what each kind of expression and statement may look like, as templates.

Input: nothing. Output: ``LEAVES``, ``EXPRESSIONS``, ``BREAKS``, ``NUMBER_BREAKS``, ``STATEMENTS``,
``WILD``, ``WILD_SECTIONS``, ``YIELDS``,
``AWAITS``. In a template:

- ``<kind>`` is any expression of a kind, ``<kind.>`` a variable of it, ``<kind=>`` one that this function may assign
  to;
- ``<kind!t>`` names a new variable (visible after its line) that ``<t>`` repeats; a ``<t>`` of its own is a hidden
  one;
- ``<kind?t>`` writes nothing: it makes ``<t>`` a variable of the kind for the rest of an expression;
- a line ``<block>`` is a block of statements, ``<loop>`` one in which ``break`` and ``continue`` may stand;
  ``<def_...>`` and ``<class_>`` are written by the methods of those names.

Kinds: ``vec`` arrays of the length that all of a call's vectors have, ``mat`` arrays of two such rows, ``sca`` NumPy
scalars and 0-d arrays, ``arr`` arrays of any shape; ``int``, ``float``, ``bool``, ``str``; ``ints`` and ``vecs``
lists, ``tab`` dicts from strings, ``set`` of ints, ``tup`` pairs of an int and a vec; ``box`` objects; ``fun``
functions from vec to vec, ``gen`` generator functions of (vec, int), ``any`` anything. Numbers are small and dyadic:
sums are exact in whatever order they are taken.
"""

from __future__ import annotations

import re


def _table(text: str) -> dict[str, tuple[str, ...]]:
    """Templates by kind: a line "kind:", then templates with two spaces between them."""
    parts = re.split(r"^(\w+):$", text, flags=re.MULTILINE)
    return {kind: tuple(re.split(r"\s{2,}", rows.strip())) for kind, rows in zip(parts[1::2], parts[2::2], strict=True)}


def _weighted(text: str) -> dict[str, tuple[tuple[int, str], ...]]:
    """Statements by section, with how often each is taken: a number and the first line, the others indented."""
    parts = re.split(r"^# (.*)$", text, flags=re.MULTILINE)
    found = {}
    for section, rows in zip(parts[1::2], parts[2::2], strict=True):
        matches = re.findall(r"^(\d+) (.*(?:\n  .*)*)", rows, flags=re.MULTILINE)
        found[section] = tuple((int(weight), body.replace("\n  ", "\n")) for weight, body in matches)
    return found


LEAVES = _table("""\
vec:
    x  y  (x + 1)  m[0]  G_VEC
mat:
    m  np.stack([x, x])  (m * 2)  m.copy()
sca:
    x.sum()  y.sum()  np.float64(0.5)  np.int64(3)  np.array(2.0)  x.dtype.type(1)
arr:
    x  m  np.arange(3)  np.ones((2, 1))  x[1:]  m.T  np.zeros(0)  np.array(1.5)
int:
    0  1  2  3  (-1)  k  k  G_INT  len(x)  obj.n
float:
    0.5  2.0  (-1.5)  s  s  G_FLOAT  obj.v
bool:
    True  False  (flag is None)  (k > 1)  (s < 1)  G_FLAG
str:
    'a'  'bc'  name  name  G_NAME  ''
ints:
    [1, 2]  [k]  obj.parts  list(range(3))  G_LIST
vecs:
    [x, y]  [x]  [x + 1, x]  items  items  [x, x]
tab:
    table  table  {'a': 1, 'b': k}  G_DICT  dict(a=2)
set:
    {1, 2}  {k}  set()  {3, k, 1}
tup:
    (1, x)  (k, y)  (2, x + 1)
box:
    obj  obj  Box()  Deep(s)  Box(2, k)
fun:
    (lambda v: v + 1)  (lambda v: v)  np.negative  np.copy  Box.scaled  obj.apply
gen:
    numbers  numbers
none:
    None
""")

EXPRESSIONS = _table("""\
vec:
    np.roll(<vec>, <int>)  np.diff(<vec>, prepend=<int>)  np.flip(<vec>)  (<vec> * 1.0).clip(<int>)  (<vec> & <vec>)
    (<vec> @ <vec>) * x  np.where(<bool>, <vec>, x)  <vec>.round()  np.add.reduce([<vec>, <vec>])  (<vec> != <vec>)
    (<vec> / <vec>)  (1 / <vec>)  np.log(<vec>)  (<vec> // <vec>)  (<vec> % <vec>)  np.sqrt(<vec>)
    (<vec> + <vec>)  (<vec> - <vec>)  (<vec> * <int>)  (<vec> + <float>)  (<vec> * <float>)  (<vec> / 2)  (-<vec>)
    abs(<vec>)  np.maximum(<vec>, <vec>)  np.where(<vec> > <int>, <vec>, <vec>)  (<vec> + <sca>)  (<vec> > <vec>)
    (<vec> == <int>)  <vec>.astype(np.float32)  <vec>.astype('i8')  <vec>[::-1]  <vec>.copy()  <mat>[0]  <mat>[-1]
    <mat>[1, ::-1]  <mat>.sum(axis=0)  <mat>.max(axis=0)  np.zeros_like(<vec>)  np.full_like(<vec>, <int>)
    np.ones(len(x))  np.minimum(<vec>, <int>)  np.asarray(<vec>)  (np.arange(len(x)) * <int>)
    np.concatenate([<vec>, <vec>])[: len(x)]  <vec>.reshape(-1)  <mat>.T[:, 0]  <vecs>[0]  <vecs>[-1]  <tup>[1]
    <box>.apply(<vec>)  <box>(<vec>, k=<int>)  Box.less(<vec>)  Deep.scaled(<vec>)  helper(<vec>, <int>)
    helper(<vec>, *(<vec>, 2), w=<int>)  helper(**{'a': <vec>, 'q': <int>})  pick(<bool>, <vec>, <vec>)  gather(<vec>)
    <fun>(<vec>)  <fun>(<vec>)  (<vec> if <bool> else <vec>)  (lambda v, u=<int>: v + u)(<vec>)  sum([<vec>, <vec>])
    sum(<gen>(<vec>, 2))  functools.reduce(operator.add, [<vec>, <vec>])  functools.partial(helper, <vec>)(<int>)
    <vecs.>[<int> % 2]  sum(<vec?v><v> * <int> for <v> in [<vec>, x])  [<vec?v><vec> for <v> in <vecs.>][0]
    next(<gen>(<vec>, 2))  list(<gen>(<vec>, 2))[-1]  next(iter([<vec>]))  {'p': <vec>}['p']  np.clip(<vec>, -2, 3)
    np.sign(<vec>)  (<vec> % 3)  (<vec> // 2)  (~(<vec> > 0))  np.stack([<vec>, <vec>])[<int> % 2]  np.cumsum(<vec>)
    ((<bool> and <vec>.any() and <vec>.all()) * <vec>)  Point(<vec>, q=<vec>).p  Data(<vec>, <int>).total()
    getattr(<box>, 'apply')(<vec>)  np.exp(<vec> * 0)  np.sqrt(<vec> * <vec>)  np.broadcast_to(<sca>, x.shape)
    copy.copy(<vec>)  (<vec> ** 2)  max([<vec>, <vec>], key=len)  call(<fun>, <vec>)
mat:
    (<mat> + <mat>)  (<mat> * <vec>)  (<mat> - <int>)  np.stack([<vec>, <vec>])  <mat>[::-1]  <mat>[:, ::-1]
    <mat>.copy()  np.where(<mat> > 0, <mat>, <vec>)  np.vstack((<vec>, <vec>))  <mat>.reshape(2, -1)
    np.array([<vec>, <vec>])  <mat>.T.copy().T  np.zeros_like(<mat>)  (<mat> > <sca>)  helper(<mat>, <vec>)
    (<mat>[:, :1] + <vec>)  np.full_like(<mat>, <int>)  (<mat>.T * <vec>[:2]).T  np.asfortranarray(<mat>)
sca:
    <vec>.sum()  <vec>.max(initial=-9)  <mat>.sum()  (<sca> + 1)  <vec>.any()  <vec>[0]  <mat>[1, 0]  (2 * <sca>)
    np.sum(<vec>)  abs(<sca>)  <vec>.min(initial=<int>)  (<sca> + <sca>)  <arr>.sum()  np.array(<int>)  <vec>[-1]
    np.float32(<int>)  (<vec>.mean() * 0)  np.prod(<vec> > 0)  <vec>[<int>]
arr:
    <arr>[None]  <arr>.T  <arr>.sum(axis=0)  <arr>.reshape(-1)  (<arr> + 1)  (<arr> * <arr>)  <arr>[..., ::-1]
    <arr>[:1]  <arr>[1:]  np.expand_dims(<arr>, 0)  <arr>.max(axis=-1, keepdims=True)  <arr>.copy()  (<arr> == <arr>)
    <vec>  <mat>  <mat>.T  np.concatenate([<vec>, <vec>])  np.ones(3)  (<arr> - <sca>)  <mat>.ravel()
    np.outer(<vec>, <vec>)  np.arange(<int> % 4)  <vec>[<vec> > 0]  (<mat> @ <vec>)  <vec>[:, None]  <vec>[::2]
    np.sort(<vec>)  np.argmax(<mat>, axis=0)  np.tile(<vec>, 2)  <mat>.swapaxes(0, 1)  <vec>.view()
int:
    len(locals())  sys._getframe().f_lineno  sys.exc_info()[0] is None  sum(map(len, <vecs>))
    (<int> + <int>)  (<int> - <int>)  (<int> * 3 % 11)  (<int> // 2)  (<int> % 3)  (-<int>)  abs(<int>)  len(<ints>)
    len(<vecs>)  <arr>.ndim  <arr>.size  <vec>.shape[0]  min(<int>, <int>)  max(<int>, <int>)  int(<bool>)
    (<int> if <bool> else <int>)  pick(<bool>, <int>, <int>)  (<int> & 3)  ((<int> << 1) % 16)  sum(range(<int> % 4))
    <ints>[0]  <ints>[-1]  len(<box>)  <tup>[0]  sum(<ints>)  (lambda q: q + <int>)(<int>)  len(f'{<int>}')
    <tab>.get('a', <int>)  len(<tab>)  len(<set>)  len(<str>)  <box>.n  <box>[0]  divmod(<int>, 3)[1]
    sum(<int?i><i> * <int> for <i> in range(3))  len([<int?i><i> for <i> in <ints.> if <bool>])
    max([<int>, 2], default=0)  (<bool> and <int>)  (<int> or <int>)  (not <int>)  (ord('a') % 7)  int(<float> * 2)
    operator.index(<int>)  <str>.count('a')  (<box> + <int>)  Slotted(<int>).right  Data(<int>, <int>).total()
    Colour.RED.value  (<int> ^ <int>)  round(<float>)  next(reversed([<int>, 2]))
    sorted([3, <int>], key=lambda q: -q)[0]  Box.made  getattr(<box>, 'missing', <int>)  hash(<int>)
    next((<int?i><i> for <i> in <ints.> if <i> > <int>), -1)  (3).bit_length()  int('7', 8)  call(lambda: <int>)
    <set>.__len__()
float:
    (<float> + <float>)  (<float> - <int>)  (<float> * 2)  (<float> / 2)  (-<float>)  abs(<float>)  float(<int>)
    (<int> / 4)  (<float> if <bool> else <float>)  <box>.double  max(<float>, 0.5)  helper(<float>, <int>)
    (<float> % 1.5)  (math.floor(<float>) * 1.0)  round(<float>, 1)  math.sqrt(<float> * <float>)  float('0.25')
    sum([<float>, <int>])  <float>.__abs__()  (<float> // 1)  math.fabs(<float>)  min(<float>, <float>)
bool:
    (<int> < <int>)  (<int> == <int>)  (<int> >= <int>)  (<float> < <float>)  (<bool> and <bool>)  (<bool> or <bool>)
    (not <bool>)  (0 < <int> < <int>)  (<int> in (1, 2, 3))  ('a' in <tab>)  (flag is None)  isinstance(<any>, int)
    isinstance(<vec>, np.ndarray)  bool(<ints>)  (<vec>.dtype == np.float64)  (<vec.> is <vec.>)
    any([<bool>, <bool>])  all(<int?i><i> > <int> for <i> in <ints.>)  (<arr>.shape == <vec>.shape)
    hasattr(<box>, 'v')  (<str> == <str>)  (<str> in <str>)  (<int> != 0)  isinstance(<box>, Deep)  callable(<any>)
    (<ints.> is <ints.>)  (<ints> == <ints>)  (<int> in <set>)  (<int> in <box>)  bool(<str>)  (<set> <= <set>)
    <str>.startswith('a')  (<box.> is <box.>)  (<tab.> is table)  (<int> not in <ints>)  (type(<any>) is int)
    bool(<box>)  (<bool> is True)  (Colour(1) is Colour.RED)  (Frozen(<int>) == Frozen(1))
str:
    ','.join(sorted(locals()))  str(sys.exc_info()[1])[:9]  f"{<vec>.sum()}"[:5]
    (<str> + <str>)[:8]  f'{<int>}-{<str>!r:>4}'[:9]  f'{<float>:.2f}'  str(<int>)  '-'.join(['a', <str>])[:9]
    <str>.upper()  <str>[::-1]  <str>[:1]  (<str> if <bool> else <str>)  ('%s' % <int>)  '{}{}'.format(<int>, <bool>)
    repr(<int>)  type(<any>).__name__  f'{<box>}'[:3]  f'{<ints>}'[:9]  f'{<vec>.dtype}{<vec>.shape}'  (<str> * 2)[:4]
    str(<tab.>.get('a'))[:9]  f'{<int>=}'  f'{<sca>:.2f}|{<str>:>3}'  '{:>4}{q}'.format(<str>, q=<int>)  str(<float>)
    ('%d %s' % (<int>, <str>))  repr(<sca>)[:9]
ints:
    [<int>, <int>]  [<int?i><int> for <i> in range(<int> % 4)]  [<int?i><i> * 2 for <i> in (1, 2, 3) if <bool>]
    list(range(<int> % 4))  [1, *<ints>][:6]  (<ints> + [<int>])[:6]  <ints>[::1]  <ints>[1:]
    sorted([3, <int>, <int>])  list(map(lambda q: q + 1, <ints>))
    [<int?i><int?j><i> + <j> for <i>, <j> in zip([1, 2], [<int>, 4])]
    [<int?i><i> for <i>, _ in enumerate('ab', <int>)]  list(reversed(<ints>))  ([<int>] * 2)
    (list(<tab>.values())[:0] + [<int>])  sorted(<set>)  list(<box>)
    [<int?i><int?j><i> - <j> for <i> in range(2) for <j> in range(<i>)]  list(filter(None, <ints>))
    list(itertools.chain(<ints>, [1]))[:6]  (list(<set>)[:0] or [<int>])  [<int?i>(lambda: <i>)() for <i> in <ints.>]
    [*{1: 2}]  list(dict.fromkeys(<ints>))  list(itertools.accumulate(<ints>))
    [<int?i><w> for <i> in <ints.> if (<int!w> := <i> + 1) > 1]  <box>.bump(<int>).parts
    sorted(<ints>, key=lambda q: (-q, q), reverse=<bool>)
vecs:
    [<vec>, <vec>]  [<vec?v><v> + <int> for <v> in <vecs.>]  [<vec?v><vec> for <v> in (x, y)]  list(<gen>(<vec>, 2))
    (<vecs> + [<vec>])[:4]  <vecs>[::-1]  [*<vecs>][:4]  list(map(<fun>, <vecs>))  ([<vec>] * 2)  list(<mat>)
    [<tup>[1], <vec>]  list(<vecs>)
tab:
    {'a': <any>, <str>: <int>}  {**<tab>, 'b': <any>}  dict(a=<int>, c=<any>)  dict(<tab>)  <tab>.copy()
    (<tab> | {'d': <vec>})  {<str?t><t>: <int> for <t> in ('a', 'b')}  dict(zip('ab', <ints>))  {'a': <tab>}
    vars(Box(<any>))  Point(<int>)._asdict()  {<str?t><int?i><t>: <i> for <t>, <i> in zip('ab', <ints.>)}
set:
    {<int>, <int>}  set(<ints>)  {<int?i><i> % 3 for <i> in <ints.>}  (<set> | <set>)  (<set> & <set>)  (<set> - {1})
    (frozenset(<ints>) | set())
tup:
    (<int>, <vec>)  (<int>, <vec>, <any>)  Point(<int>, <vec>)  tuple([<int>, <vec>])  ((<int>,) + (<vec>,))
    (*<ints>[:1], 2, <vec>)[-2:]
box:
    Box(<float>, <int>)  Deep(<float>, n=<int>)  <box>.bump()  (<box> if <bool> else <box>)  copy.copy(<box>)
    echo(<box>)
fun:
    (lambda v: <vec>)  (lambda v, u=<int>: v * u)  functools.partial(helper, b=<int>)  <box>.apply  <box>
    (<fun> if <bool> else <fun>)  logged(<fun>)  [<fun>, <fun>][<int> % 2]
    [<int?i>(lambda v: v + <i>) for <i> in range(3)][0]  operator.neg  (lambda *v: v[0])  (lambda v, **o: v)
gen:
    numbers  (lambda v, n: (v + <int> for _ in range(n + 1)))  (lambda v, n: iter([v, v + n]))
    functools.partial(guarded, LOG)
cond:
    <bool>  <bool>  <bool>  <int>  <ints>  <box>  <sca> > <int>  (<vec> > 0).any()  <vec>.sum() > <int>
    (<vec> == <vec>).all()  <str>  <vec> is not None  len(<vecs>) > 1
any:
    map(<fun>, <vecs>)  iter(<vecs>)  <fun>  zip(<ints>, <vecs>)
    <gen>(<vec>, 2)
    <int>  <float>  <bool>  <str>  <vec>  <vec>  <vec>  <mat>  <sca>  <arr>  <ints>  <vecs>  <tab>  <set>  <tup>
    <box>  None  (<any>, <any>)  [<any>, <any>]  Slotted(<any>)  Data(<any>, <int>)  Frozen(<int>)  Colour.BLUE
    Point(<any>)  slice(<int>, None)  (<any>, [<any>])  <vec>.shape  <vec>.dtype  range(<int>)  1j  b'xy'  ...  flag
    name  rest  more  Oops(<int>)
shown:
    <int>  <float>  <bool>  <str>  <ints>  <box>  type(<any>).__name__  <vec>.shape  <vec>.dtype  <vec>.tolist()
    <sca>
error:
    ValueError(<str>)  Oops(<int>)  Worse(<any>)  KeyError(<int>)  TypeError  IndexError('i')  ZeroDivisionError()
    StopIteration(<int>)
caught:
    RuntimeWarning  (FloatingPointError, RuntimeWarning)  UnboundLocalError
    ValueError  Oops  Worse  (KeyError, IndexError)  Exception  Exception  TypeError  ArithmeticError
    (ValueError, TypeError)  LookupError  (Oops, StopIteration)  NameError
""")

# What capture must stop at, around an expression ``<it>`` of any kind, and around those of one kind.
BREAKS = _table("""\
any:
    opaque(<it>)  opaque(<it>)  echo(<it>)  (print('here', <shown>) or <it>)  (tcompile.graph_break() or <it>)
    call(lambda: <it>)  pick(opaque(True), <it>)  [<it>, tcompile.graph_break()][0]  (opaque(<int>), <it>)[1]
    poke([<it>])[0]  (LOG.append(<shown>) or <it>)  (note(LOG, <any>) or <it>)
""")["any"]

NUMBER_BREAKS = _table("""\
int:
    int(<sca>)  (int(<vec>.sum()) % 5)  (<vec> > 0).sum().item()  len(<vec>.tolist())  np.count_nonzero(<vec>)
float:
    float(<sca>)  (<vec>.sum().item() * 1.0)  sum(<vec>.tolist(), 0.5)
bool:
    bool(<sca>)  bool((<vec> > <int>).all())  (<int> in <vec>.tolist())
vec:
    poke(<vec>)  poke(<vec.>, <int>)  np.array(<vec>.tolist())  write(<vec>, <int>)  double(<vec>)  raising(<int>)
ints:
    poke(<ints.>, <int>)  sorted(<vec>.astype('i8').tolist())[:4]
tab:
    poke(<tab.>, <any>)
set:
    poke(<set.>, <int>)
box:
    poke(<box.>, <int>)
""")

STATEMENTS = _weighted("""\
# names
1 <any=> = None
9 <vec!a> = <vec>
3 <int!a> = <int>
2 <float!a> = <float>
1 <bool!a> = <cond> and <bool>
1 <str!a> = <str>
3 <mat!a> = <mat>
2 <sca!a> = <sca>
1 <arr!a> = <arr>
2 <ints!a> = <ints>
2 <vecs!a> = <vecs>
2 <tab!a> = <tab>
1 <set!a> = <set>
1 <tup!a> = <tup>
2 <box!a> = <box>
2 <fun!a> = <fun>
1 <gen!a> = <gen>
4 <vec=> = <vec>
2 <int=> = <int>
1 <ints=> = <ints>
1 <tab=> = <tab>
1 <mat=> = <mat>
1 <vec!a> = <vec!b> = <vec>
2 <vec!a> = <vec.>
1 <ints!a> = <ints.>
1 <mat!a> = <mat.>
1 <vec!a>: np.ndarray = <vec>
1 <c> = <vec>
  <vec!b> = <c>
  del <c>
1 del <vec=>
1 <int!a> = <vec!b> = None
  <a>, <b> = <tup>[:2]
# unpacking
2 <vec!a>, <vec!b> = <vec>, <vec>
1 <vec=>, <vec=> = <vec>, <vec>
1 <int!a>, *<ints!b> = [1, *<ints>]
1 <int!a>, (<vec!b>, _) = <int>, (<vec>, <any>)
1 <vec!a>, <vec!b> = <mat>
1 *<vecs!a>, <vec!b> = <vecs>
1 <vec!a>, <int!b> = [<vec>, <int>]
1 <int!a>, <int!b> = <ints>
1 (<int!a>, <vec!b>), <any!c> = <tup>[:2], <any>
# augmented assignment
3 <vec=> += <vec>
2 <vec=> *= <int>
1 <vec=> -= <float>
2 <int=> += <int>
1 <float=> *= 2
2 <ints=> += [<int>]
  <ints.>[:] = <ints.>[-5:]
1 <str=> += <str>[:2]
  <str=> = <str>[-6:]
1 <mat=> += <vec>
1 <set=> |= <set>
1 <tab=> |= <tab>
1 <int=> //= 2
1 <vec=> /= 2
1 <box>.n += <int>
1 <vecs.>[0] += <int>
1 <tab.>['a'] += <int>
1 <mat.>[0] += <vec>
1 <ints.>[-1] *= 2
1 <vec=> **= 2
# writes into arrays
2 <vec.>[0] = <int>
2 <vec.>[1:] = <sca>
2 <vec.>[:] = <vec>
1 <vec.>[::2] += <int>
2 <mat.>[0] = <vec>
1 <mat.>[:, -1] *= 2
1 <vec.>[<vec> > 0] = <int>
1 <vec!a> = <vec.>[::-1]
  <a>[:1] = <int>
1 <vec!a> = <mat.>[<int> % 2]
  <a> += <vec>
1 np.add(<vec>, <vec>, out=<vec.>)
1 <vec.>.fill(<int>)
1 <vec.>[...] = <int>
1 <arr!a> = <mat.>.T
  <a>[0] = <int>
1 <arr!a> = <vec.>[1:]
  <a> *= 2
  <a>[:1] = <vec.>[:1]
1 np.copyto(<vec.>, <vec>)
1 x[:1], y[:1] = y[:1] + 1, x[:1] + 1
# containers
2 <ints.>.append(<int>)
  del <ints.>[6:]
1 <ints.>[0] = <int>
1 <ints.>[1:] = <ints>[:2]
1 <ints.>.insert(0, <int>)
  <ints.>.pop()
1 <ints.>.reverse()
1 <ints.>.sort(key=lambda q: -q)
1 <int!a> = <ints.>.pop()
1 del <ints.>[0]
1 <ints.>.remove(<int>)
1 <ints.>.extend(<ints>[:2])
  del <ints.>[5:]
1 <ints.>.clear()
2 <vecs.>.append(<vec>)
  del <vecs.>[4:]
2 <vecs.>[0] = <vec>
1 <vec!a> = <vecs.>.pop()
1 <vecs.>[:] = <vecs.>[::-1]
2 <tab.>['b'] = <any>
2 <tab.>[<str>] = <any>
1 <any!a> = <tab.>.pop('b', <any>)
1 <tab.>.update(z=<any>)
1 del <tab.>['b']
1 <any!a> = <tab.>.setdefault('u', [])
1 <any!a> = <tab>[<str>]
1 <tab.>['b'], <tab.>['c'] = <any>, <any>
1 <set.>.add(<int>)
1 <set.>.discard(<int>)
1 <set.>.update(<ints>)
1 <tab.>['self'] = <tab.>
1 <tab.>[f'{<int>}'] = <sca>
1 <tab.>[<int>] = <any>
1 <tab.>[<str>, <int>] = <any>
  <tab.>[<int>] = <str>
1 <vec!a> = <vecs.>[<int>]
1 <vecs.>.append(<vec>)
  <vec!a> = <vecs.>[-1] - <vecs.>[-2]
  del <vecs.>[4:]
1 <ints.>.append(<int>)
  <int!a> = <ints.>[-2]
1 LOG.append(f'{<int>} {<sca>} {<str>}')
1 <box>.w = f'{<int>}', <str>, '%s:%d' % (<str>, <int>)
# objects
2 <box>.v = <float>
1 <box>.n = <int>
2 <box>.w = <any>
1 <box>.double = <float>
1 <any!a> = <box>.w
1 del <box>.v
1 <box>.parts = <ints>
1 <box>[0] = <int>
1 setattr(<box>, 'w', <any>)
1 <box>.bump(<int>)
1 <any!a> = Slotted(<any>, <any>).swap()
  <a>.left = <any>
1 <any!a> = Data(<int>)
  <a>.q = <any>
  <a>.rest.append(<int>)
1 Frozen(<int>).p = 1
1 Box.rate = <int> % 4
1 <any!a> = <box>.missing
1 <any!a> = vars(<box>)
# globals
2 G_STATE = <any>
1 G_INT = <int>
1 G_INT += 1
1 G_LIST.append(<int>)
  del G_LIST[5:]
1 G_DICT['b'] = <any>
1 G_VEC = <vec>
1 G_VEC[:] = <vec>
1 <any!a> = G_STATE
# what breaks
3 print(<shown>, <shown>)
3 LOG.append(<any>)
2 note(LOG, <any>, <vec>)
1 tcompile.graph_break()
1 print(f'{<int>} {<str>}', end=';')
1 <any!a> = locals().keys() and 1
# branches
5 if <cond>:
      <block>
4 if <cond>:
      <block>
  else:
      <block>
2 if <cond>:
      <block>
  elif <cond>:
      <block>
  else:
      <block>
1 if (<int!a> := <int>) > 1:
      <block>
1 assert <cond>, <str>
1 match <any>:
      case int(<int!a>) if <bool>:
          <block>
      case [<any!b>, *_]:
          <block>
      case {'a': <any!c>}:
          <block>
      case _:
          <block>
1 match <tup>:
      case (0 | 1, <vec!a>):
          <block>
      case (<int!b>, <vec!c>) if <bool>:
          <block>
      case _:
          <block>
1 match <box>:
      case Deep(n=1):
          <block>
      case Box(v=<any!a>, n=<int!b>):
          <block>
1 match <str>:
      case 'a' | 'bc':
          <block>
      case <str!a>:
          <block>
# loops
1 for <str!a> in <tab.>:
      <loop>
1 for <int!a> in <ints.>:
      if len(<ints.>) > 5:
          break
      <loop>
1 for <vec!a>, <vec!b> in itertools.pairwise(<vecs>[:4]):
      <loop>
3 for <int!a> in range(<int> % 4):
      <loop>
1 for <int!a> in range(3):
      <loop>
  else:
      <block>
2 for <vec!a> in <vecs>[:3]:
      <loop>
1 for <vec!a> in <mat>:
      <loop>
1 for <int!a> in list(<ints>):
      <loop>
2 for <int!a>, <vec!b> in enumerate(<vecs>[:3], <int>):
      <loop>
1 for <int!a>, <vec!b> in zip(<ints>[:3], <vecs>):
      <loop>
1 for <str!a>, <any!b> in list(<tab>.items())[:3]:
      <loop>
1 for <str!a> in sorted(<tab>)[:3]:
      <loop>
2 for <vec!a> in <gen>(<vec>, 2):
      <loop>
1 for <int!a> in sorted(<set>):
      <loop>
2 <c> = <int> % 4
  while <c> > 0:
      <c> -= 1
      <loop>
1 <c> = 0
  while True:
      <c> += 1
      if <c> > 3 or <cond>:
          break
      <loop>
1 <c> = 3
  while (<c> := <c> - 1) and <cond>:
      <loop>
  else:
      <block>
1 <c> = iter(<vecs>[:3])
  for <vec!a> in <c>:
      <loop>
      <vec!b> = next(<c>, <vec>)
1 <c> = <gen>(<vec>, 3)
  <vec!a> = next(<c>)
  <block>
  <vec!b> = next(<c>)
1 for <int!a> in range(2):
      for <int!b> in range(<a>, 3):
          <loop>
1 for <ints=>[0] in range(2):
      <loop>
1 <c> = numbers(<vec>, 4)
  for <vec!a> in <c>:
      <block>
      if <cond>:
          <c>.close()
# exceptions
3 try:
      <block>
  except <caught>:
      <block>
2 try:
      <block>
  except <caught> as <e>:
      LOG.append((type(<e>).__name__, str(<e>)))
      <block>
2 try:
      <block>
  finally:
      <block>
2 try:
      <block>
  except <caught>:
      <block>
  else:
      <block>
  finally:
      <block>
1 try:
      <block>
      raise <error>
  except <caught>:
      <block>
1 try:
      <block>
  except <caught>:
      <block>
      raise
1 try:
      <block>
      raise <error>
  except <caught> as <e>:
      <block>
      raise Worse(<int>) from <e>
1 try:
      raising(<int>)
  except ValueError as <e>:
      LOG.append(<e>.args)
  except <caught>:
      <block>
1 try:
      try:
          <block>
          raise <error>
      finally:
          <block>
  except <caught>:
      <block>
1 try:
      raise ExceptionGroup('g', [ValueError(<int>), Oops(<int>)])
  except* ValueError as <e>:
      LOG.append(len(<e>.exceptions))
  except* Oops:
      <block>
1 raise <error>
1 <vec!a> = <vec> + np.ones(len(x) + 1)
1 <int!a> = <int> // (<int> % 2)
1 <any!a> = <ints>[<int>]
1 <any!a> = <box>.nothing
1 <any!a> = undefined
1 <any!a> = table['nothing']
# with
2 with np.errstate(all='raise'):
      <block>
1 with np.errstate(divide='raise', invalid='warn'):
      <vec!a> = <vec> / <vec>
      <block>
1 with warnings.catch_warnings():
      warnings.simplefilter('error')
      <block>
1 try:
      with np.errstate(all='raise'):
          <block>
          <vec!a> = <vec> / <vec>
          <block>
  except FloatingPointError as <e>:
      LOG.append(str(<e>))
2 with Scope(LOG, <str>):
      <block>
2 with Scope(LOG, 'sw', <caught>) as <any!a>:
      <block>
2 with managed(LOG, <str>) as <str!a>:
      <block>
1 with Scope(LOG, 'p') as <any!a>, managed(LOG, 'q'):
      <block>
1 with np.errstate(all='ignore'):
      <block>
1 with contextlib.suppress(ValueError, Oops):
      <block>
1 with Scope(LOG, 'r', Exception):
      <block>
      raise <error>
1 with contextlib.nullcontext(<vec>) as <vec!a>:
      <block>
# functions
2 <def_vec>
2 <def_nonlocal>
1 <def_gen>
1 <def_recursive>
1 <def_many>
1 <class_>
1 def <fun!g>(v):
      return v + <int>
  <vec!a> = <g>(<vec>) + <g>(<vec>)
1 <any!a> = [<int?i>(lambda: <i>) for <i> in range(3)]
  <int!b> = <a>[0]()
1 @logged
  def <fun!g>(v):
      return v * 2
  <vec!a> = <g>(<vec>)
  <int!b> = <g>.calls
""")

# What calm programs do without: whole sections of statements, and templates with something in them that breaks the
# graph or is likely to raise.
WILD_SECTIONS = frozenset(("what breaks", "exceptions", "with"))
WILD = re.compile(
    r"call\(|echo|guarded|logged|locals|sys\.|copy\.copy|pairwise|Box\b|Deep\b|Oops|missing|\.w\b|out=|\.remove|del |"
    r"iter\(<|any: <|zip\(<ints>, <vecs>\)$|map\(<fun>, <vecs>\)$|<class_>|assert|__len__|iteration\(|np\.array\(\[|"
    r"<vec> > 0\]|\.(all|any|sum)\(\) *>|\)\.(all|any)\(\)|<sca> >|f'\{<(float|box|vec)"
)

# Statements of generators and of coroutines only.
YIELDS = ("yield <vec>", "yield <vec>", "<any!a> = yield <vec>", "yield from <gen>(<vec>, 2)")
AWAITS = (
    "<vec!a> = await later(<vec>)",
    "<vec!a> = <vec> + await later(<int>)",
    "async with asynchronous(LOG, <str>) as <str!a>:\n    <block>",
    "async for <vec!a> in eventually(<vec>, 3):\n    <loop>",
    "<vecs!a> = [<v> + 1 async for <v> in eventually(<vec>, 2)]",
    "<vecs!a> = [await later(<v>) for <v> in <vecs.>]",
    "return await later(<any>)",
)
