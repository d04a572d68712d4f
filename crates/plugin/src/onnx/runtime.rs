//! A model on a thread of its own.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use rten::{Dimension, Model, RunOptions, ThreadPool, Value};

use crate::error::Problem;

/// An input, and where its output goes.
type Question = (Vec<f32>, Sender<Result<f32, String>>);

/// A model that answers, for the life of the process.
#[derive(Debug)]
pub(super) struct Runtime {
    questions: Mutex<Sender<Question>>,
}

impl Runtime {
    /// Reads a model, and asks it with so many zeros.
    pub(super) fn start(bytes: Vec<u8>, inputs: usize) -> Result<Self, Problem> {
        let model = Model::load(bytes).map_err(|cause| Problem::Model(cause.to_string()))?;
        let shape = shape(&model, inputs).map_err(Problem::Model)?;
        let (questions, asked) = channel();
        let pool = Arc::new(ThreadPool::with_num_threads(1));
        let serve = move || pool.clone().run(move || answer_all(&model, &shape, &pool, asked));
        std::thread::Builder::new()
            .name("onnx".to_owned())
            .spawn(serve)
            .map_err(|cause| Problem::Model(cause.to_string()))?;
        let runtime = Self { questions: Mutex::new(questions) };
        runtime.ask(vec![0.0; inputs]).map_err(Problem::Model)?;
        Ok(runtime)
    }

    /// The first number of the model's first output.
    pub(super) fn ask(&self, input: Vec<f32>) -> Result<f32, String> {
        let gone = "the runtime failed in it, as printed above: export it as ONNX with static shapes and float32";
        let (answer, answered) = channel();
        let questions = self.questions.lock().unwrap_or_else(PoisonError::into_inner).clone();
        questions.send((input, answer)).map_err(|_| gone.to_owned())?;
        answered.recv().map_err(|_| gone.to_owned())?
    }
}

/// The shape of a model's input, which holds so many numbers. A size that is open, such as that of
/// a batch, is 1. The runtime panics on operands that do not match.
fn shape(model: &Model, count: usize) -> Result<Vec<usize>, String> {
    let inputs = model.input_ids().len();
    if inputs != 1 {
        return Err(format!("it has {inputs} inputs, and should have one"));
    }
    let size = |dimension: &Dimension| match dimension {
        Dimension::Fixed(size) => *size,
        Dimension::Symbolic(_) => 1,
    };
    let Some(declared) = model.input_shape(0) else { return Ok(vec![1, count]) };
    let shape: Vec<usize> = declared.iter().map(size).collect();
    if shape.iter().product::<usize>() == count {
        Ok(shape)
    } else {
        Err(format!(
            "its input has the shape {shape:?}, and history times observations are {count} numbers"
        ))
    }
}

fn answer_all(model: &Model, shape: &[usize], pool: &Arc<ThreadPool>, asked: Receiver<Question>) {
    for (input, answer) in asked {
        let options = RunOptions::default().with_thread_pool(Some(pool.clone()));
        // Who asked may have been stopped.
        let _ = answer.send(run(model, shape, input, options));
    }
}

fn run(
    model: &Model,
    shape: &[usize],
    input: Vec<f32>,
    options: RunOptions,
) -> Result<f32, String> {
    let input = Value::from_shape(shape, input).map_err(|cause| cause.to_string())?;
    let output = model.run_one(input.into(), Some(options)).map_err(|cause| cause.to_string())?;
    match output {
        Value::FloatTensor(numbers) => {
            let numbers = numbers.into_data();
            numbers.first().copied().ok_or_else(|| "its first output is empty".to_owned())
        }
        other => Err(format!("its first output is {:?}, no float32", other.dtype())),
    }
}
