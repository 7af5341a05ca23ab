"""The reference engine: every client in turn through the client function, then the server function."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fedrecplus.device import Device, PseudoItems
from fedrecplus.protocol import BYTES_PER_NUMBER, Broadcast, PeerMessage, Upload
from fedrecplus.randomness import subkey, uniform
from fedrecplus.rounds import broadcast, client_round, server_round
from fedrecplus.rounds.client import denoise, noise_of
from fedrecplus.simulation.problem import Problem
from fedrecplus.simulation.state import RoundReport, SimulationState


def simulate_round(problem: Problem, state: SimulationState) -> tuple[SimulationState, RoundReport]:
    """One round of everybody. Paper: Algorithm 1, lines 1–11"""
    message = message_of(problem, state, problem.selects_by_features or problem.rates_by_features)
    clients = problem.taking_part(state.server.round)
    state = _copy(state)
    uploads = {}
    for client in clients:
        upload, device = client_round(message, device_of(problem, state, int(client)), problem.config)
        uploads[int(client)] = upload
        remember(problem, state, device)
    peer_bytes = 0
    if problem.config.aggregation.denoising > 0:
        peer_bytes = _denoise_all(problem, state, uploads)
    server = server_round(state.server, list(uploads.values()), problem.config)
    down = len(clients) * BYTES_PER_NUMBER * state.server.V.size + peer_bytes
    report = RoundReport(len(clients), sum(upload.bytes for upload in uploads.values()) + peer_bytes, down)
    return replace(state, server=server), report


def message_of(problem: Problem, state: SimulationState, with_features: bool = True) -> Broadcast:
    """The round's broadcast, with encoded items where a part looks at them."""
    features = problem.features(state.server.V) if with_features else np.zeros((0, 0))
    return broadcast(state.server, problem.mean, problem.public, features)


def device_of(problem: Problem, state: SimulationState, client: int) -> Device:
    """One client, taken out of the simulation."""
    items, ratings = problem.ratings.of(client)
    places = slice(problem.pseudo_indptr[client], problem.pseudo_indptr[client + 1])
    kept = None
    if state.drawn[client]:
        virtual = state.virtual_ratings[places] if state.virtual_ratings.size else np.empty(0)
        kept = PseudoItems(state.pseudo_items[places].astype(np.int64), virtual.astype(np.float64))
    U = state.U[client].astype(np.float64)
    return Device(client, items, ratings, problem.ratings.scale.standard_step, U, problem.secret(client), kept)


def remember(problem: Problem, state: SimulationState, device: Device) -> None:
    """Put a client back into the simulation's arrays."""
    client = device.client
    state.U[client] = device.U
    if device.kept is not None and len(state.pseudo_items) and not state.drawn[client]:
        places = slice(problem.pseudo_indptr[client], problem.pseudo_indptr[client + 1])
        state.pseudo_items[places] = device.kept.items
        if state.virtual_ratings.size:
            state.virtual_ratings[places] = device.kept.ratings
        state.drawn[client] = True


def _copy(state: SimulationState) -> SimulationState:
    return replace(
        state,
        U=state.U.copy(),
        drawn=state.drawn.copy(),
        pseudo_items=state.pseudo_items.copy(),
        virtual_ratings=state.virtual_ratings.copy(),
    )


def denoiser_of(problem: Problem, client: int, denoisers: NDArray[np.int64], round_number: int) -> int:
    """The denoising client that an ordinary client picks, by its own secret."""
    draw = uniform(subkey(problem.secret(client), "denoiser"), np.array([round_number]))[0]
    return int(denoisers[int(draw * len(denoisers))])


def _denoise_all(problem: Problem, state: SimulationState, uploads: dict[int, Upload]) -> int:
    """Let ordinary clients tell denoising clients of their pseudo rows. Returns the bytes that went between them."""
    clients = np.array(sorted(uploads))
    denoisers = problem.denoisers(clients, state.server.round)
    inbox: dict[int, list[PeerMessage]] = {int(client): [] for client in denoisers}
    for client in clients:
        if client not in inbox:
            noise = noise_of(uploads[client], device_of(problem, state, int(client)))
            inbox[denoiser_of(problem, int(client), denoisers, state.server.round)].append(noise)
    for client, messages in inbox.items():
        uploads[client] = denoise(uploads[client], device_of(problem, state, client), messages)
    return sum(message.bytes for messages in inbox.values() for message in messages)
