"""Converts ONNX operators: conversion."""
