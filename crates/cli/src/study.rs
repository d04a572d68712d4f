//! `trimtab engine experiment` and `trimtab engine rollout`.

use trimtab_engine as engine;
use trimtab_fleet_client::experiment::{Design, Schedule};
use trimtab_fleet_client::{
    NewExperiment, NewRollout, RolloutAction, RolloutOrder, StopExperiment,
};

use crate::Failure;
use crate::args::{ExperimentCommand, RolloutCommand, Which};
use crate::engine::{client, show};
use crate::study_args::{NewStudy, OrderStudy, StartExperiment, StartRollout};

/// Begins, shows and stops experiments.
pub(crate) fn experiment(command: ExperimentCommand) -> Result<(), Failure> {
    match command {
        ExperimentCommand::Start(start) => begin_experiment(*start),
        ExperimentCommand::List(list) => {
            let all = client(&list.ask)?.experiments(list.service.as_deref());
            show(&all.map_err(Failure::input)?, list.ask.json, engine::experiments_text)
        }
        ExperimentCommand::Show(Which { service, name, ask }) => {
            let body = client(&ask)?.experiment(&service, &name).map_err(Failure::input)?;
            show(&body, ask.json, engine::experiment_text)
        }
        ExperimentCommand::Stop(OrderStudy { which: Which { service, name, ask }, reason }) => {
            let stop = StopExperiment { service, name, reason };
            let body = client(&ask)?.stop_experiment(&stop).map_err(Failure::input)?;
            show(&body, ask.json, engine::experiment_text)
        }
    }
}

fn begin_experiment(start: StartExperiment) -> Result<(), Failure> {
    let schedule = if start.together { Schedule::Together } else { Schedule::Each };
    let design = match (start.share, start.block) {
        (Some(share), _) => Design::Prefixes { share },
        (None, block) => Design::Switchback { block: block.unwrap_or(1), schedule },
    };
    let NewStudy { which: Which { service, name, ask }, wash_out, seed, reason } = start.study;
    let new = NewExperiment {
        service,
        name,
        control: start.control,
        treatment: start.treatment,
        design,
        length: start.length,
        start: start.start,
        wash_out: Some(wash_out),
        metric: start.metric,
        guards: start.guard,
        seed,
        reason,
    };
    let body = client(&ask)?.begin_experiment(&new).map_err(Failure::input)?;
    show(&body, ask.json, engine::experiment_text)
}

/// Begins and shows rollouts, and tells them what to do.
pub(crate) fn rollout(command: RolloutCommand) -> Result<(), Failure> {
    match command {
        RolloutCommand::Start(start) => begin_rollout(*start),
        RolloutCommand::List(list) => {
            let all = client(&list.ask)?.rollouts(list.service.as_deref());
            show(&all.map_err(Failure::input)?, list.ask.json, engine::rollouts_text)
        }
        RolloutCommand::Show(Which { service, name, ask }) => {
            let body = client(&ask)?.rollout(&service, &name).map_err(Failure::input)?;
            show(&body, ask.json, engine::rollout_text)
        }
        RolloutCommand::Hold(order) => tell(order, RolloutAction::Hold),
        RolloutCommand::Resume(order) => tell(order, RolloutAction::Resume),
        RolloutCommand::Abort(order) => tell(order, RolloutAction::Abort),
    }
}

fn begin_rollout(start: StartRollout) -> Result<(), Failure> {
    let NewStudy { which: Which { service, name, ask }, wash_out, seed, reason } = start.study;
    let new = NewRollout {
        service,
        name,
        from: start.from,
        to: start.to,
        stages: Some(start.stages),
        intervals: Some(start.intervals),
        wash_out: Some(wash_out),
        metric: start.metric,
        guards: start.guard,
        seed,
        reason,
    };
    let body = client(&ask)?.begin_rollout(&new).map_err(Failure::input)?;
    show(&body, ask.json, engine::rollout_text)
}

fn tell(order: OrderStudy, action: RolloutAction) -> Result<(), Failure> {
    let Which { service, name, ask } = order.which;
    let order = RolloutOrder { service, name, action, reason: order.reason };
    let body = client(&ask)?.order_rollout(&order).map_err(Failure::input)?;
    show(&body, ask.json, engine::rollout_text)
}
