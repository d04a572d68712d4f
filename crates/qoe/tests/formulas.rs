//! Formulas: what they mean, how they fail, and that nothing makes them panic.

use exmex::{Differentiate, Express, FlatEx};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use trimtab_qoe::{
    Conference, Download, FORMULA_DEPTH_MAX, Factor, Factors, Formula, Hints, Model,
    OperatingPoint, Streaming, Web,
};
use trimtab_units::{Duration, Rate};

/// The same cases on every run and machine.
fn repeatable(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        rng_seed: RngSeed::Fixed(0x00e1),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

fn point(mbps: f64, delay_s: f64, loss: f64) -> OperatingPoint {
    OperatingPoint {
        throughput: Rate::from_mbps(mbps),
        delay: Duration::from_secs_f64(delay_s),
        loss,
    }
}

/// The value of a formula in T = 8, D = 0.5, L = 0.25.
#[track_caller]
fn value(text: &str) -> f64 {
    match Formula::parse(text, &[]) {
        Ok(formula) => formula.score(&point(8.0, 0.5, 0.25), &Factors::new()),
        Err(error) => panic!("{error}\n{}", error.pointer(text)),
    }
}

#[test]
fn arithmetic_means_what_it_says() {
    let cases = [
        ("1 - 2 + 3", 2.0),
        ("1 - 2 - 3", -4.0),
        ("T - 2 + 3", 9.0),
        ("T / 2 * 4", 16.0),
        ("T / 2 / 4", 1.0),
        ("T * 2 * 3", 48.0),
        ("2 + 3 * T", 26.0),
        ("-T^2", -64.0),
        ("(-T)^2", 64.0),
        ("2 * -T^2", -128.0),
        ("2 / -T^2", -0.03125),
        ("2 - -T", 10.0),
        ("--T", 8.0),
        ("T^-1", 0.125),
        ("4^D * 3", 6.0),
        ("1.5e1 + .5", 15.5),
        ("1e-3 * 1E+3", 1.0),
        ("( ( T ) )", 8.0),
        ("T\n +\t1", 9.0),
    ];
    for (text, want) in cases {
        assert_eq!(value(text), want, "{text}");
    }
}

#[test]
fn functions_mean_what_they_say() {
    let cases = [
        ("max(1, T)", 8.0),
        ("max(1, min(T, 3), D)", 3.0),
        ("min(max(1, T), max(D, 2))", 2.0),
        ("1 + max(0, T - 3) * 2", 11.0),
        ("sqrt(T * 2)", 4.0),
        ("sqrt(2 * T * 4) + 1", 9.0),
        ("abs(D - T)", 7.5),
        ("pow(T, 2) + log2(T) + log10(100)", 69.0),
        ("ln(exp(T))", 8.0),
        ("tanh(0) + exp(0)", 1.0),
        ("softplus(T, 0) + softplus(-T, 0)", 8.0),
        ("if(L < 0.25, 1, 2)", 2.0),
        ("if(L <= 0.25, 1, 2)", 1.0),
        ("if(T > D, T, D)", 8.0),
        ("if(T >= 9, T, D) * 2", 1.0),
        ("if(L < 0.1, 1, if(L < 0.3, 2 + T, 3)) - 1", 9.0),
        ("-max(T, 1)^2", -64.0),
        ("2 ^ -max(1, D)", 0.5),
        ("-ln(1)", 0.0),
    ];
    for (text, want) in cases {
        assert!((value(text) - want).abs() < 1e-12, "{text}: {} not {want}", value(text));
    }
}

#[test]
fn slopes_at_thresholds() {
    let gradient = |text: &str| {
        let g = Formula::parse(text, &[]).unwrap();
        let g = g.gradient(&point(8.0, 0.5, 0.25), &Factors::new());
        (g.throughput, g.delay, g.loss)
    };
    assert_eq!(gradient("max(T, 3*D)"), (1.0, 0.0, 0.0));
    assert_eq!(gradient("min(T, 3*D)"), (0.0, 3.0, 0.0));
    assert_eq!(gradient("abs(D - T)"), (1.0, -1.0, 0.0));
    assert_eq!(gradient("if(L < 0.1, T, D*L)"), (0.0, 0.25, 0.5));
    // On the kink the later argument counts.
    assert_eq!(gradient("max(0, D - 0.5)"), (0.0, 1.0, 0.0));
    assert_eq!(gradient("max(D - 0.5, 0)"), (0.0, 0.0, 0.0));
}

/// Where formulas fail: text, column, and what the message must say.
#[test]
fn errors_name_the_place_and_the_remedy() {
    let too_deep = "(".repeat(FORMULA_DEPTH_MAX + 1);
    let too_long = "1+".repeat(501);
    let cases = [
        ("", 1, "empty"),
        ("  \n", 1, "empty"),
        ("T +", 4, "ends where"),
        ("T * (D + ", 9, "ends where"),
        ("T + * D", 5, "not `*`"),
        ("* T", 1, "not `*`"),
        ("T * Q", 5, "unknown variable `Q` (known: T, D, L, R, remaining, C, V, Rbar, mine)"),
        ("t", 1, "unknown variable `t`"),
        ("foo(T)", 1, "unknown function `foo` (known: abs, exp, if, ln,"),
        ("T (D)", 1, "to multiply, write *"),
        ("2 T", 3, "an operator is missing before `T`"),
        ("T D", 3, "an operator is missing before `D`"),
        ("(T)(D)", 4, "an operator is missing before `(`"),
        ("(T + D", 1, "never closed"),
        ("T * (D + (L)", 5, "never closed"),
        ("T + D)", 6, "closes nothing"),
        ("T * ()", 6, "not `)`"),
        ("T + max(D)", 5, "`max` takes 2 to 16 arguments, not 1"),
        ("ln(T, D)", 1, "`ln` takes 1 argument, not 2"),
        ("pow(T, D, L)", 1, "`pow` takes 2 arguments, not 3"),
        ("if(T < D, 1)", 1, "`if` takes 3 arguments, not 2"),
        ("max(T,,D)", 7, "not `,`"),
        ("T, D", 2, "decimals are written with a point"),
        ("(T, D)", 3, "decimals are written with a point"),
        ("T + max", 5, "`max` is a function"),
        ("log(T)", 1, "write ln (natural), log10 or log2"),
        ("2^3^T", 4, "(a^b)^c or a^(b^c)"),
        ("2^-3^T", 5, "(a^b)^c or a^(b^c)"),
        ("T < D", 3, "only as the condition of if"),
        ("if(T < D < L, 1, 2)", 10, "only as the condition of if"),
        ("if(T < D, 1 < 2, 2)", 13, "only as the condition of if"),
        ("if(T, 1, 2)", 1, "must be a comparison"),
        ("T $ D", 3, "'$' means nothing here"),
        ("T × D", 3, "'×' means nothing here"),
        ("R = 5", 3, "'=' means nothing here"),
        ("3.4.5 * T", 1, "`3.4.5` is not a finite number"),
        ("T*2x", 3, "`2x` is not a finite number"),
        ("1e999", 1, "`1e999` is not a finite number"),
        (&too_deep, FORMULA_DEPTH_MAX + 1, "nested deeper than 32"),
        (&too_long, 1001, "longer than 1000"),
    ];
    for (text, column, says) in cases {
        let error = Formula::parse(text, &["mine"]).unwrap_err();
        assert_eq!(error.column(), Some(column), "{text}: {error}");
        let message = error.to_string();
        assert!(message.contains(says), "{text}: {message}");
        assert!(message.starts_with(&format!("formula, column {column}: ")), "{message}");
    }
    let error = Formula::parse("T *\n Q", &[]).unwrap_err();
    assert_eq!(error.pointer("T *\n Q"), "T *  Q\n     ^");
}

#[test]
fn names_of_ones_own_factors_are_checked() {
    for bad in ["T", "max", "log", "two words", ""] {
        let error = Formula::parse("D", &[bad]).unwrap_err();
        assert_eq!(error.column(), None);
        assert!(error.to_string().contains("cannot name a factor"), "{error}");
    }
    // Names that begin like a function or an operator are ordinary names.
    let formula = Formula::parse("min_rtt + maximum + elseif", &["min_rtt", "maximum", "elseif"]);
    let mut factors = Factors::new();
    for (name, x) in [("min_rtt", 1.0), ("maximum", 10.0), ("elseif", 100.0)] {
        factors.set_named(name, x).unwrap();
    }
    assert_eq!(formula.unwrap().score(&point(1.0, 1.0, 0.0), &factors), 111.0);
}

#[test]
fn an_unset_factor_gives_no_hints() {
    let model = Model::parse("ln(T) - mine * D", &["mine"]).unwrap();
    let p = point(4.0, 0.1, 0.0);
    assert_eq!(model.factors(), ["mine"]);
    assert!(model.score(&p, &Factors::new()).is_nan());
    assert_eq!(model.hints(&p, &Factors::new()), None);
    // Even where the missing number does not touch a derivative.
    let model = Model::parse("ln(T) - D + mine", &["mine"]).unwrap();
    assert_eq!(model.hints(&p, &Factors::new()), None);
}

#[test]
fn names_of_models_in_configurations() {
    assert!(matches!(Model::parse(" download ", &[]), Ok(Model::Download(_))));
    assert!(matches!(Model::parse("vod", &[]), Ok(Model::Streaming(_))));
    assert!(matches!(Model::parse("R/T", &[]), Ok(Model::Formula(_))));
    assert!(Model::parse("downlaod", &[]).unwrap_err().to_string().contains("unknown variable"));
}

#[test]
fn shared_between_threads() {
    fn check<T: Clone + Send + Sync + 'static>() {}
    check::<Model>();
}

/// Random formulas as a tree, to compare with what the text of the tree means.
#[derive(Clone, Debug)]
enum Tree {
    Leaf(&'static str),
    Number(u8),
    Minus(Box<Tree>),
    Infix(char, Box<Tree>, Box<Tree>),
    Call(&'static str, Vec<Tree>),
}

impl Tree {
    /// As few parentheses as the rules of precedence allow, to try those rules.
    fn text(&self, least: u8) -> String {
        let (level, text) = match self {
            Tree::Leaf(name) => (4, (*name).to_owned()),
            Tree::Number(n) => (4, f64::from(*n / 2).to_string()),
            Tree::Minus(a) => (2, format!("-{}", a.text(3))),
            Tree::Infix('^', a, b) => (3, format!("{}^{}", a.text(4), b.text(4))),
            Tree::Infix(op @ ('*' | '/'), a, b) => (2, format!("{}{op}{}", a.text(2), b.text(3))),
            Tree::Infix(op, a, b) => (1, format!("{} {op} {}", a.text(1), b.text(2))),
            Tree::Call(name, args) => {
                let args: Vec<_> = args.iter().map(|a| a.text(0)).collect();
                (4, format!("{name}({})", args.join(", ")))
            }
        };
        if level < least { format!("({text})") } else { text }
    }

    fn eval(&self, p: &OperatingPoint) -> f64 {
        match self {
            Tree::Leaf("T") => p.throughput_mbps(),
            Tree::Leaf("D") => p.delay_s(),
            Tree::Leaf(_) => p.loss_ratio(),
            Tree::Number(n) => f64::from(*n / 2),
            Tree::Minus(a) => -a.eval(p),
            Tree::Infix(op, a, b) => {
                let (a, b) = (a.eval(p), b.eval(p));
                match op {
                    '+' => a + b,
                    '-' => a - b,
                    '*' => a * b,
                    '/' => a / b,
                    _ => libm::pow(a, b),
                }
            }
            Tree::Call(name, args) => {
                let args: Vec<f64> = args.iter().map(|a| a.eval(p)).collect();
                match (*name, args.as_slice()) {
                    ("max", all) => fold(all, |a, b| a > b),
                    ("min", all) => fold(all, |a, b| a < b),
                    ("abs", [a]) => a.abs(),
                    ("exp", [a]) => libm::exp(*a),
                    (_, all) => libm::tanh(all[0]),
                }
            }
        }
    }

    /// With every parenthesis, since exmex by itself takes `exp(D*2*3)` for `D*exp(2*3)`.
    fn text_in_full(&self) -> String {
        match self {
            Tree::Infix(op, a, b) => format!("({}{op}{})", a.text_in_full(), b.text_in_full()),
            Tree::Call(name, args) => format!("{name}({})", args[0].text_in_full()),
            leaf => leaf.text(0),
        }
    }

    /// Whether exmex by itself can differentiate it.
    fn is_symbolic(&self) -> bool {
        match self {
            Tree::Leaf(_) | Tree::Number(_) => true,
            Tree::Minus(_) => false,
            Tree::Infix(op, a, b) => *op != '^' && a.is_symbolic() && b.is_symbolic(),
            Tree::Call(name, args) => {
                ["exp", "tanh"].contains(name) && args.iter().all(Tree::is_symbolic)
            }
        }
    }
}

/// The extreme of `all`; NaN if any is.
fn fold(all: &[f64], before: fn(f64, f64) -> bool) -> f64 {
    let keep = |a: f64, b: f64| if a.is_nan() || before(a, b) { a } else { b };
    all.iter().copied().reduce(keep).unwrap_or(f64::NAN)
}

fn tree() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![
        prop::sample::select(vec!["T", "D", "L"]).prop_map(Tree::Leaf),
        any::<u8>().prop_map(Tree::Number),
    ];
    leaf.prop_recursive(5, 40, 4, |inner| {
        let boxed = inner.clone().prop_map(Box::new);
        let op = prop::sample::select(vec!['+', '-', '*', '/', '^']);
        prop_oneof![
            4 => (op, boxed.clone(), boxed.clone()).prop_map(|(o, a, b)| Tree::Infix(o, a, b)),
            1 => boxed.prop_map(Tree::Minus),
            1 => (prop::sample::select(vec!["abs", "exp", "tanh"]), inner.clone())
                .prop_map(|(f, a)| Tree::Call(f, vec![a])),
            1 => (prop::sample::select(vec!["max", "min"]), prop::collection::vec(inner, 2..4))
                .prop_map(|(f, all)| Tree::Call(f, all)),
        ]
    })
}

proptest! {
    #![proptest_config(repeatable(2000))]

    #[test]
    fn text_means_its_tree(tree in tree(), t in 0.1f64..50.0, d in 0.0f64..1.0, l in 0.0f64..1.0) {
        let (text, p) = (tree.text(0), point(t, d, l));
        prop_assume!(text.chars().count() <= 1000);
        let got = Formula::parse(&text, &[]).unwrap().score(&p, &Factors::new());
        let want = tree.eval(&p);
        prop_assert!(got == want || (got.is_nan() && want.is_nan()), "{text}: {got}, not {want}");
    }

    /// exmex's symbolic derivatives, where it has them, agree with ours.
    #[test]
    fn derivatives_agree_with_symbolic_ones(
        tree in tree().prop_filter("has a symbolic derivative", Tree::is_symbolic),
        t in 0.5f64..5.0, d in 0.1f64..1.0, l in 0.1f64..0.9,
    ) {
        let (text, p) = (tree.text(0), point(t, d, l));
        let formula = Formula::parse(&text, &[]).unwrap();
        // exmex cancels 0/0 times 0 away; a score that does not exist has no derivative here.
        prop_assume!(formula.score(&p, &Factors::new()).is_finite());
        let ours = formula.gradient(&p, &Factors::new());
        // The zeros make sure that exmex sees all three variables.
        let whole = format!("{}+0*T+0*D+0*L", tree.text_in_full());
        let flat: FlatEx<f64> = FlatEx::parse(&whole).unwrap();
        let names = flat.var_names().to_vec();
        prop_assert_eq!(&names, &["D", "L", "T"]);
        let at = [p.delay_s(), p.loss_ratio(), p.throughput_mbps()];
        for (index, mine) in [ours.delay, ours.loss, ours.throughput].into_iter().enumerate() {
            let theirs = flat.clone().partial(index).unwrap().eval(&at).unwrap();
            let near = (mine - theirs).abs() <= 1e-9 * theirs.abs().max(1.0);
            prop_assert!(near || !theirs.is_finite(), "{text}: {mine}, exmex {theirs}");
        }
    }

    /// A built-in written as text is the built-in.
    #[test]
    fn built_in_formulas(
        t in 0.05f64..60.0, d in 0.0f64..0.6, l in 0.0f64..1.0, size in 0.01f64..80.0,
        buffer in 0.0f64..30.0, remaining in 0.0f64..160.0,
    ) {
        let mut f = Factors::new();
        for factor in [Factor::Request, Factor::Chunk, Factor::MeanResponse] {
            f.set(factor, size);
        }
        f.set(Factor::Buffer, buffer);
        f.set(Factor::Remaining, remaining);
        let p = point(t, d, l);
        let pairs = [
            (Download::FORMULA, Model::download()),
            (Streaming::FORMULA, Model::streaming()),
            (Streaming::FORMULA_PRINTED, Model::Streaming(Streaming::printed())),
            (Conference::FORMULA, Model::conference()),
            (Conference::FORMULA_PRINTED, Model::Conference(Conference::printed())),
            (Web::FORMULA, Model::web()),
        ];
        for (text, built_in) in pairs {
            let formula = Model::parse(text, &[]).unwrap();
            // The web model does without what remains, and a formula with it does not.
            let read = formula.factors().into_iter().filter(|&name| name != "remaining");
            prop_assert_eq!(sorted(read.collect()), sorted(built_in.factors()));
            let near = |a: f64, b: f64| (a - b).abs() <= 1e-9 * a.abs().max(1.0);
            let (a, b) = (formula.score(&p, &f), built_in.score(&p, &f));
            prop_assert!(near(a, b), "{text}: {a}, not {b}");
            let (a, b) = (formula.hints(&p, &f).unwrap(), built_in.hints(&p, &f).unwrap());
            prop_assert!(near(a.lambda, b.lambda) && near(a.beta, b.beta), "{text}: {a:?} {b:?}");
        }
    }
}

fn sorted(mut names: Vec<&str>) -> Vec<&str> {
    names.sort_unstable();
    names
}

/// Tries `text` as a formula, and if it is one, evaluates it at an ordinary and at a dead point.
fn hammer(text: &str) -> Result<(), TestCaseError> {
    match Formula::parse(text, &["mine"]) {
        Ok(formula) => {
            let mut f = Factors::new();
            f.set_named("mine", -1.0).unwrap();
            for p in [point(8.0, 0.1, 0.01), OperatingPoint::default(), point(1e12, 1e9, 1.0)] {
                let _ = formula.score(&p, &f);
                if let Some(Hints { lambda, beta }) = formula.gradient(&p, &f).hints() {
                    prop_assert!((0.0..=Hints::MAX).contains(&lambda), "{text}: {lambda}");
                    prop_assert!((0.0..=Hints::MAX).contains(&beta), "{text}: {beta}");
                }
            }
        }
        Err(error) => {
            let column = error.column();
            let last = text.chars().count() + 1;
            prop_assert!(column.is_some_and(|c| (1..=last).contains(&c)), "{text}: {error}");
            prop_assert!(!error.to_string().contains("refuses"), "{text}: {error}");
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(repeatable(20_000))]

    #[test]
    fn any_text_is_safe(text in any::<String>()) {
        hammer(&text)?;
    }

    /// Pieces of formulas in any order.
    #[test]
    fn any_tokens_are_safe(parts in prop::collection::vec(prop::sample::select(vec![
        "T", "D", "L", "R", "mine", "0", "1", "2.5", "1e-9", "1e300", "+", "-", "-", "*", "/", "^",
        "<", ">=", "(", "(", ")", ")", ")", ",", ",", "max(", "min(", "if(", "ln(", "sqrt(", "abs(",
        "exp(", "pow(", "softplus(", " ", "e", "{", "}", "log", "é",
    ]), 0..30)) {
        hammer(&parts.concat())?;
    }
}

#[test]
fn deep_and_wide_formulas_are_fine() {
    let depth = FORMULA_DEPTH_MAX;
    let deep = format!("{}T{}", "(".repeat(depth), ")".repeat(depth));
    assert_eq!(value(&deep), 8.0);
    let calls = format!("{}T{}", "sqrt(".repeat(depth), ")".repeat(depth));
    assert!((value(&calls) - 1.0).abs() < 1e-9);
    let wide = format!("0{}", "+1".repeat(499));
    assert_eq!(value(&wide), 499.0);
    let powers = format!("{}T{}", "2^(".repeat(depth), ")".repeat(depth));
    assert_eq!(value(&powers), f64::INFINITY);
    let signs = format!("{}T", "-".repeat(999));
    assert_eq!(value(&signs), -8.0);
}
